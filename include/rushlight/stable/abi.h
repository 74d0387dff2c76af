// The stable ABI of extensions, by the names of PyTorch 2.9 and later: functions of C that a
// library of ops calls and that PyTorch has as well, so that one binary loads in both. Programs use
// it by the headers beside this one; those include nothing else of the library, which a binary for
// both must not need.
//
// A handle is owned by who got it and given back by the function that deletes it. A function that
// fails returns 1, and torch_exception_get_what says why. What `since` names came with that version
// of PyTorch: a binary that calls it needs that version or a later one.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rushlight/export.h>

// The version that a binary is to load in: 2.9 is (2ULL << 56) | (9ULL << 48).
#define TORCH_VERSION_2_10_0 (((0ULL + 2) << 56) | ((0ULL + 10) << 48))
#define TORCH_VERSION_2_11_0 (((0ULL + 2) << 56) | ((0ULL + 11) << 48))
#define TORCH_VERSION_2_12_0 (((0ULL + 2) << 56) | ((0ULL + 12) << 48))
#define TORCH_VERSION_2_13_0 (((0ULL + 2) << 56) | ((0ULL + 13) << 48))
#define TORCH_ABI_VERSION TORCH_VERSION_2_13_0
#ifdef TORCH_TARGET_VERSION
#define TORCH_FEATURE_VERSION TORCH_TARGET_VERSION
#else
#define TORCH_FEATURE_VERSION TORCH_ABI_VERSION
#endif

#define AOTI_TORCH_EXPORT RL_API
#define AOTI_TORCH_SUCCESS 0
#define AOTI_TORCH_FAILURE 1
#define TORCH_SUCCESS 0
#define TORCH_FAILURE 1

namespace rushlight {
struct Half;
struct BFloat16;
template <class T>
struct complex;
}  // namespace rushlight

struct AtenTensorOpaque;
struct AtenGeneratorOpaque;
struct TorchLibraryOpaque;
struct StableListOpaque;
struct StringOpaque;
struct StreamOpaque;
struct DeviceGuardOpaque;
using AtenTensorHandle = AtenTensorOpaque*;
using AtenGeneratorHandle = AtenGeneratorOpaque*;
using TorchLibraryHandle = TorchLibraryOpaque*;
using StableListHandle = StableListOpaque*;
using StringHandle = StringOpaque*;
using StreamHandle = StreamOpaque*;
using DeviceGuardHandle = DeviceGuardOpaque*;
using AOTITorchError = int32_t;
// An argument or a result: a number, or a handle that the value owns (stable/values.h).
using StableIValue = uint64_t;
using ParallelFunc = void (*)(int64_t begin, int64_t end, void* context);

// What a dtype, a layout and the others are as numbers, in whichever library runs.
#define RL_FOR_EACH_STABLE_DTYPE(_)                                                          \
  _(uint8, Byte)                                                                             \
  _(int8, Char)                                                                              \
  _(int16, Short) _(int32, Int) _(int64, Long) _(float16, Half) _(float32, Float)            \
      _(float64, Double) _(complex32, ComplexHalf) _(complex64, ComplexFloat)                \
          _(complex128, ComplexDouble) _(bool, Bool) _(bfloat16, BFloat16) _(uint16, UInt16) \
              _(uint32, UInt32) _(uint64, UInt64) _(float8_e5m2, Float8_e5m2)                \
                  _(float8_e4m3fn, Float8_e4m3fn) _(float8_e5m2fnuz, Float8_e5m2fnuz)        \
                      _(float8_e4m3fnuz, Float8_e4m3fnuz)
#define RL_FOR_EACH_STABLE_LAYOUT(_)                                                  \
  _(strided, Strided, 0)                                                              \
  _(sparse_coo, Sparse, 1)                                                            \
  _(sparse_csr, SparseCsr, 2) _(sparse_csc, SparseCsc, 4) _(sparse_bsr, SparseBsr, 5) \
      _(sparse_bsc, SparseBsc, 6)
#define RL_FOR_EACH_STABLE_MEMORY_FORMAT(_) \
  _(contiguous_format, Contiguous)          \
  _(preserve_format, Preserve) _(channels_last, ChannelsLast) _(channels_last_3d, ChannelsLast3d)
#define RL_FOR_EACH_STABLE_DEVICE(_) \
  _(cpu, CPU, 0)                     \
  _(cuda, CUDA, 1) _(meta, Meta, 14) _(xpu, XPU, 12) _(mps, MPS, 13) _(privateuse1, PrivateUse1, 20)
#define RL_FOR_EACH_STABLE_TAG(_)                                                                  \
  _(core)                                                                                          \
  _(cudagraph_unsafe)                                                                              \
  _(data_dependent_output) _(dynamic_output_shape) _(flexible_layout) _(generated) _(inplace_view) \
      _(maybe_aliasing_or_mutating) _(needs_contiguous_strides) _(needs_exact_strides)             \
          _(needs_fixed_stride_order) _(nondeterministic_bitwise) _(nondeterministic_seeded)       \
              _(out_variant) _(pointwise) _(pt2_compliant_tag) _(reduction) _(view_copy)
// Types of elements that numbers come out of and go into.
#define RL_FOR_EACH_STABLE_NUMBER(_)                                                            \
  _(float32, float)                                                                             \
  _(float64, double)                                                                            \
  _(uint8, uint8_t) _(uint16, uint16_t) _(uint32, uint32_t) _(uint64, uint64_t) _(int8, int8_t) \
      _(int16, int16_t) _(int32, int32_t) _(int64, int64_t) _(bool, bool)                       \
          _(complex64, ::rushlight::complex<float>)

extern "C" {

RL_API uint64_t aoti_torch_abi_version();
#define RL_NUMBER(name, ...) RL_API int32_t aoti_torch_dtype_##name();
RL_FOR_EACH_STABLE_DTYPE(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name, ...) RL_API int32_t aoti_torch_layout_##name();
RL_FOR_EACH_STABLE_LAYOUT(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name, ...) RL_API int32_t aoti_torch_memory_format_##name();
RL_FOR_EACH_STABLE_MEMORY_FORMAT(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name, ...) RL_API int32_t aoti_torch_device_type_##name();
RL_FOR_EACH_STABLE_DEVICE(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name) RL_API int32_t torch_tag_##name();  // since 2.12
RL_FOR_EACH_STABLE_TAG(RL_NUMBER)
#undef RL_NUMBER
// Of what is not here; binaries that know of it ask for its number all the same.
#define RL_FOR_EACH_STABLE_NUMBER_OF_OTHERS(_)                             \
  _(aoti_torch_layout__mkldnn, 3)                                          \
  _(aoti_torch_layout_jagged, 7)                                           \
  _(aoti_torch_dtype_float8_e8m0fnu, 44) _(torch_dtype_float8_e8m0fnu, 44) \
      _(aoti_torch_dtype_float4_e2m1fn_x2, 45) _(torch_dtype_float4_e2m1fn_x2, 45)
#define RL_NUMBER(name, value) RL_API int32_t name();
RL_FOR_EACH_STABLE_NUMBER_OF_OTHERS(RL_NUMBER)
#undef RL_NUMBER
RL_API size_t aoti_torch_dtype_element_size(int32_t dtype);

// ---- what went wrong in the last call of this thread that failed (since 2.13) ----

RL_API const char* torch_exception_get_what();
RL_API const char* torch_exception_get_what_without_backtrace();

// ---- tensors ----

RL_API AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
RL_API AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* ret);
RL_API AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** ret);
RL_API AOTITorchError aoti_torch_get_storage_size(AtenTensorHandle tensor, int64_t* ret);
RL_API AOTITorchError aoti_torch_get_storage_numel(AtenTensorHandle tensor, int64_t* ret);
RL_API AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* ret);
RL_API AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* ret);
RL_API AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* ret);
RL_API AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** ret);
RL_API AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* ret);
RL_API AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** ret);
RL_API AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* ret);
RL_API AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* ret);
RL_API AOTITorchError aoti_torch_get_layout(AtenTensorHandle tensor, int32_t* ret);
RL_API AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* ret);
RL_API AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* ret);
RL_API AOTITorchError aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* ret);
#define RL_ITEM(name, T) \
  RL_API AOTITorchError aoti_torch_item_##name(AtenTensorHandle tensor, T* ret);
RL_FOR_EACH_STABLE_NUMBER(RL_ITEM)
RL_ITEM(float16, ::rushlight::Half)
RL_ITEM(bfloat16, ::rushlight::BFloat16)
#undef RL_ITEM
#define RL_MAKE(name, T) \
  RL_API AOTITorchError aoti_torch_scalar_to_tensor_##name(T value, AtenTensorHandle* ret);
RL_FOR_EACH_STABLE_NUMBER(RL_MAKE)
RL_MAKE(complex128, ::rushlight::complex<double>)
#undef RL_MAKE
RL_API AOTITorchError aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes,
                                               const int64_t* strides, int32_t dtype,
                                               int32_t device_type, int32_t device_index,
                                               AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_create_tensor_from_blob(
    void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset,
    int32_t dtype, int32_t device_type, int32_t device_index, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_create_tensor_from_blob_v2(
    void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset,
    int32_t dtype, int32_t device_type, int32_t device_index, AtenTensorHandle* ret, int32_t layout,
    const uint8_t* opaque_metadata, int64_t opaque_metadata_size);
// `deleter(data, context)` runs with the last tensor on the memory; since 2.11.
RL_API AOTITorchError torch_from_blob(void* data, int64_t ndim, const int64_t* sizes,
                                      const int64_t* strides, int64_t offset, int32_t dtype,
                                      int32_t device_type, int32_t device_index,
                                      AtenTensorHandle* ret, int32_t layout,
                                      const uint8_t* opaque_metadata, int64_t opaque_metadata_size,
                                      void (*deleter)(void* data, void* context), void* context);
RL_API AOTITorchError aoti_torch__reinterpret_tensor(AtenTensorHandle self, int64_t ndim,
                                                     const int64_t* sizes, const int64_t* strides,
                                                     int64_t offset, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_as_strided(AtenTensorHandle self, const int64_t* sizes,
                                            const int64_t* strides, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_clone(AtenTensorHandle self, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src,
                                       int32_t non_blocking);
RL_API AOTITorchError aoti_torch_zero_(AtenTensorHandle self);
// Since 2.10: the address, to write or to read alone.
RL_API AOTITorchError torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** ret);
RL_API AOTITorchError torch_get_const_data_ptr(AtenTensorHandle tensor, const void** ret);
RL_API AOTITorchError torch_set_requires_grad(AtenTensorHandle tensor, bool requires_grad);
RL_API bool aoti_torch_grad_mode_is_enabled();
RL_API void aoti_torch_grad_mode_set_enabled(bool enabled);
RL_API void aoti_torch_check(bool good, const char* function, const char* file, uint32_t line,
                             const char* message);
RL_API void aoti_torch_warn(const char* function, const char* file, uint32_t line,
                            const char* message);

// ---- some ops with types of their own ----

RL_API AOTITorchError aoti_torch_aten_amax(AtenTensorHandle self, const int64_t* dim,
                                           int64_t dim_len, int32_t keepdim, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_aten_fill__Scalar(AtenTensorHandle self, double value);
RL_API AOTITorchError aoti_torch_aten_full(const int64_t* size, int64_t size_len, double value,
                                           int32_t* dtype, int32_t* layout, int32_t* device_type,
                                           int32_t device_index, int32_t* pin_memory,
                                           AtenTensorHandle* ret);  // since 2.10
RL_API AOTITorchError aoti_torch_aten_narrow(AtenTensorHandle self, int64_t dim, int64_t start,
                                             int64_t length, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_aten_new_empty(AtenTensorHandle self, const int64_t* size,
                                                int64_t size_len, int32_t* dtype, int32_t* layout,
                                                int32_t* device_type, int32_t device_index,
                                                int32_t* pin_memory, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_aten_new_zeros(AtenTensorHandle self, const int64_t* size,
                                                int64_t size_len, int32_t* dtype, int32_t* layout,
                                                int32_t* device_type, int32_t device_index,
                                                int32_t* pin_memory, AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_aten_pad(AtenTensorHandle self, const int64_t* pad,
                                          int64_t pad_len, const char* mode, double* value,
                                          AtenTensorHandle* ret);
RL_API AOTITorchError aoti_torch_aten_subtract_Tensor(AtenTensorHandle self, AtenTensorHandle other,
                                                      double alpha,
                                                      AtenTensorHandle* ret);  // since 2.10

// ---- ops, by their schemas: the stack holds the arguments, then the results ----

RL_API AOTITorchError aoti_torch_call_dispatcher(const char* name, const char* overload,
                                                 StableIValue* stack);
// Since 2.10: with the version that the caller was built for.
RL_API AOTITorchError torch_call_dispatcher(const char* name, const char* overload,
                                            StableIValue* stack, uint64_t version);
RL_API AOTITorchError aoti_torch_library_init_def(const char* space, const char* file,
                                                  uint32_t line, TorchLibraryHandle* ret);
RL_API AOTITorchError aoti_torch_library_init_fragment(const char* space, const char* file,
                                                       uint32_t line, TorchLibraryHandle* ret);
RL_API AOTITorchError aoti_torch_library_init_impl(const char* space, const char* key,
                                                   const char* file, uint32_t line,
                                                   TorchLibraryHandle* ret);
RL_API AOTITorchError aoti_torch_library_def(TorchLibraryHandle self, const char* schema);
RL_API AOTITorchError torch_library_def_with_tags(TorchLibraryHandle self, const char* schema,
                                                  const int32_t* tags,
                                                  int32_t num_tags);  // since 2.12
RL_API AOTITorchError torch_library_set_python_module(TorchLibraryHandle self, const char* module,
                                                      const char* context);  // since 2.13
RL_API AOTITorchError aoti_torch_library_impl(TorchLibraryHandle self, const char* name,
                                              void (*function)(StableIValue* stack,
                                                               uint64_t num_arguments,
                                                               uint64_t num_results));
RL_API AOTITorchError torch_library_impl(TorchLibraryHandle self, const char* name,
                                         void (*function)(StableIValue*, uint64_t, uint64_t),
                                         uint64_t version);  // since 2.10
RL_API AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle self);

// ---- lists and strings (since 2.10), boxes of optional values (since 2.13) ----

RL_API AOTITorchError torch_new_list_reserve_size(size_t size, StableListHandle* ret);
RL_API AOTITorchError torch_list_size(StableListHandle list, size_t* ret);
RL_API AOTITorchError torch_list_get_item(StableListHandle list, size_t i, StableIValue* ret);
RL_API AOTITorchError torch_list_set_item(StableListHandle list, size_t i, StableIValue item);
RL_API AOTITorchError torch_list_push_back(StableListHandle list, StableIValue item);
RL_API AOTITorchError torch_delete_list(StableListHandle list);  // not what its items own
RL_API AOTITorchError torch_new_string_handle(const char* data, size_t size, StringHandle* ret);
RL_API AOTITorchError torch_delete_string(StringHandle string);
RL_API AOTITorchError torch_string_length(StringHandle string, size_t* ret);
RL_API AOTITorchError torch_string_c_str(StringHandle string, const char** ret);
RL_API AOTITorchError torch_new_stable_ivalue(StableIValue** ret);
RL_API AOTITorchError torch_delete_stable_ivalue(StableIValue* value);

// ---- devices, threads, generators ----

RL_API AOTITorchError torch_parse_device_string(const char* text, uint32_t* type,
                                                int32_t* index);  // since 2.10
RL_API AOTITorchError aoti_torch_create_device_guard(int32_t index, DeviceGuardHandle* ret);
RL_API AOTITorchError aoti_torch_delete_device_guard(DeviceGuardHandle guard);
RL_API AOTITorchError aoti_torch_device_guard_set_index(DeviceGuardHandle guard, int32_t index);
RL_API AOTITorchError aoti_torch_get_current_device_index(int32_t* ret);
RL_API AOTITorchError aoti_torch_get_current_stream(int32_t index, StreamHandle* ret);
RL_API AOTITorchError aoti_torch_stream_id(StreamHandle stream, int64_t* ret);
RL_API AOTITorchError aoti_torch_delete_stream(StreamHandle stream);
RL_API AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t grain,
                                         ParallelFunc function, void* context);  // since 2.10
RL_API AOTITorchError torch_get_thread_idx(uint32_t* ret);                       // since 2.10
RL_API AOTITorchError torch_get_num_threads(uint32_t* ret);                      // since 2.10
RL_API AOTITorchError torch_new_generator_handle(AtenGeneratorHandle self,
                                                 AtenGeneratorHandle* ret);  // since 2.13
RL_API AOTITorchError torch_delete_generator(AtenGeneratorHandle generator);
RL_API AOTITorchError torch_generator_get_device(AtenGeneratorHandle generator, int32_t* type,
                                                 int32_t* index);

}  // extern "C"
