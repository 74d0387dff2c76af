// Tensors of the stable ABI, and numbers, devices and threads.
#include <rushlight/accelerator.h>
#include <rushlight/autograd.h>
#include <rushlight/factories.h>
#include <rushlight/generator.h>
#include <rushlight/ops.h>
#include <rushlight/parallel.h>
#include <rushlight/schema.h>
#include <rushlight/thread_index.h>
#include <rushlight/thread_state.h>

#include "library/stable_values.h"

struct StreamOpaque {
  rushlight::Stream stream;
};
// The accelerator's current device until it goes.
struct DeviceGuardOpaque {
  int8_t before;
};

using namespace rushlight;  // NOLINT: the functions of C have no namespace
using stable::new_handle;
using stable::tensor_of;

// ---- numbers ----

uint64_t aoti_torch_abi_version() { return TORCH_ABI_VERSION; }
#define RL_NUMBER(name, Enum) \
  int32_t aoti_torch_dtype_##name() { return static_cast<int32_t>(ScalarType::Enum); }
RL_FOR_EACH_STABLE_DTYPE(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name, Enum) \
  int32_t aoti_torch_memory_format_##name() { return static_cast<int32_t>(MemoryFormat::Enum); }
RL_FOR_EACH_STABLE_MEMORY_FORMAT(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name, Enum, number) \
  int32_t aoti_torch_layout_##name() { return number; }
RL_FOR_EACH_STABLE_LAYOUT(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name, Enum, number) \
  int32_t aoti_torch_device_type_##name() { return number; }
RL_FOR_EACH_STABLE_DEVICE(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name) \
  int32_t torch_tag_##name() { return static_cast<int32_t>(Tag::name); }
RL_FOR_EACH_STABLE_TAG(RL_NUMBER)
#undef RL_NUMBER
#define RL_NUMBER(name, value) \
  int32_t name() { return value; }
RL_FOR_EACH_STABLE_NUMBER_OF_OTHERS(RL_NUMBER)
#undef RL_NUMBER
size_t aoti_torch_dtype_element_size(int32_t dtype) {
  size_t size = 0;  // of what is no dtype
  stable::run([&] { size = static_cast<size_t>(itemsize(stable::dtype_of(dtype))); });
  return size;
}

const char* torch_exception_get_what() { return stable::last_error().c_str(); }
const char* torch_exception_get_what_without_backtrace() { return stable::last_error().c_str(); }

// ---- what a tensor is ----

AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  return stable::run([&] { delete &tensor_of(tensor); });
}
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* ret) {
  return stable::run([&] { *ret = new_handle(tensor_of(tensor)); });
}
AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* ret) {
  return stable::run([&] { *ret = new_handle(Tensor()); });
}
AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* ret) {
  return stable::run([&] { *ret = tensor_of(tensor).defined(); });
}
AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** ret) {
  return stable::run([&] { *ret = tensor_of(tensor).data_ptr(); });
}
AOTITorchError torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** ret) {
  return stable::run([&] { *ret = tensor_of(tensor).mutable_data_ptr(); });
}
AOTITorchError torch_get_const_data_ptr(AtenTensorHandle tensor, const void** ret) {
  return stable::run([&] { *ret = tensor_of(tensor).const_data_ptr(); });
}
AOTITorchError aoti_torch_get_storage_size(AtenTensorHandle tensor, int64_t* ret) {
  return stable::run([&] { *ret = static_cast<int64_t>(tensor_of(tensor).storage()->nbytes()); });
}
AOTITorchError aoti_torch_get_storage_numel(AtenTensorHandle tensor, int64_t* ret) {
  return stable::run([&] {
    const Tensor& t = tensor_of(tensor);
    *ret = static_cast<int64_t>(t.storage()->nbytes()) / t.element_size();
  });
}
AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* ret) {
  return stable::run([&] { *ret = tensor_of(tensor).storage_offset(); });
}
AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* ret) {
  return stable::run([&] { *ret = tensor_of(tensor).dim(); });
}
AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* ret) {
  return stable::run([&] { *ret = tensor_of(tensor).numel(); });
}
AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** ret) {
  return stable::run([&] { *ret = const_cast<int64_t*>(tensor_of(tensor).sizes().data()); });
}
AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** ret) {
  return stable::run([&] { *ret = const_cast<int64_t*>(tensor_of(tensor).strides().data()); });
}
AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* ret) {
  return stable::run([&] { *ret = tensor_of(tensor).size(d); });
}
AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* ret) {
  return stable::run([&] { *ret = tensor_of(tensor).stride(d); });
}
AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* ret) {
  return stable::run([&] { *ret = static_cast<int32_t>(tensor_of(tensor).scalar_type()); });
}
AOTITorchError aoti_torch_get_layout(AtenTensorHandle tensor, int32_t* ret) {
  return stable::run([&] { *ret = stable::number_of(tensor_of(tensor).layout()); });
}
AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* ret) {
  return stable::run([&] { *ret = stable::number_of(tensor_of(tensor).device().type()); });
}
AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* ret) {
  return stable::run([&] { *ret = tensor_of(tensor).device().index(); });
}
AOTITorchError aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* ret) {
  return stable::run([&] { *ret = tensor_of(tensor).is_contiguous(); });
}

// ---- numbers in and out ----

#define RL_ITEM(name, T)                                                      \
  AOTITorchError aoti_torch_item_##name(AtenTensorHandle tensor, T* ret) {    \
    return stable::run([&] { *ret = tensor_of(tensor).template item<T>(); }); \
  }
RL_FOR_EACH_STABLE_NUMBER(RL_ITEM)
RL_ITEM(float16, Half)
RL_ITEM(bfloat16, BFloat16)
#undef RL_ITEM
#define RL_MAKE(name, T)                                                                    \
  AOTITorchError aoti_torch_scalar_to_tensor_##name(T value, AtenTensorHandle* ret) {       \
    return stable::run(                                                                     \
        [&] { *ret = new_handle(full({}, Scalar(value), TensorOptions(dtype_of_v<T>))); }); \
  }
RL_FOR_EACH_STABLE_NUMBER(RL_MAKE)
RL_MAKE(complex128, complex<double>)
#undef RL_MAKE

// ---- tensors from memory, and from others ----

namespace {

// What an op's list of ints says, from C's pointer and length.
IntArrayRef ints(const int64_t* list, int64_t size) { return {list, static_cast<size_t>(size)}; }

TensorOptions options_of(int32_t dtype, int32_t device_type, int32_t device_index) {
  return TensorOptions(stable::dtype_of(dtype))
      .device(stable::device_of(device_type, device_index));
}
// Each may be null: the default, or that of another tensor.
TensorOptions options_of(const int32_t* dtype, const int32_t* layout, const int32_t* device_type,
                         int32_t device_index, const int32_t* pin_memory) {
  TensorOptions options;
  if (dtype != nullptr) {
    options = options.dtype(stable::dtype_of(*dtype));
  }
  if (layout != nullptr) {
    options = options.layout(stable::layout_of(*layout));
  }
  if (device_type != nullptr) {
    options = options.device(stable::device_of(*device_type, device_index));
  }
  if (pin_memory != nullptr) {
    options = options.pinned_memory(*pin_memory != 0);
  }
  return options;
}

Tensor strided(const Tensor& t, int32_t layout) {
  RL_CHECK(stable::layout_of(layout) == kStrided,
           "from_blob of the stable ABI: memory is a strided tensor's, not one of layout number ",
           layout);
  return t;
}
void* shifted(void* data, int64_t offset, int32_t dtype) {
  return static_cast<char*>(data) + offset * itemsize(stable::dtype_of(dtype));
}

// The deleter of C's, as the one of a storage.
struct Deleter {
  void (*run)(void* data, void* context);
  void* data;
  void* context;
};

}  // namespace

AOTITorchError aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes, const int64_t* strides,
                                        int32_t dtype, int32_t device_type, int32_t device_index,
                                        AtenTensorHandle* ret) {
  return stable::run([&] {
    *ret = new_handle(empty_strided(ints(sizes, ndim), ints(strides, ndim),
                                    options_of(dtype, device_type, device_index)));
  });
}
AOTITorchError aoti_torch_create_tensor_from_blob(void* data, int64_t ndim, const int64_t* sizes,
                                                  const int64_t* strides, int64_t offset,
                                                  int32_t dtype, int32_t device_type,
                                                  int32_t device_index, AtenTensorHandle* ret) {
  return stable::run([&] {
    *ret = new_handle(from_blob(shifted(data, offset, dtype), ints(sizes, ndim),
                                ints(strides, ndim), options_of(dtype, device_type, device_index)));
  });
}
AOTITorchError aoti_torch_create_tensor_from_blob_v2(void* data, int64_t ndim, const int64_t* sizes,
                                                     const int64_t* strides, int64_t offset,
                                                     int32_t dtype, int32_t device_type,
                                                     int32_t device_index, AtenTensorHandle* ret,
                                                     int32_t layout, const uint8_t* metadata,
                                                     int64_t metadata_size) {
  return torch_from_blob(data, ndim, sizes, strides, offset, dtype, device_type, device_index, ret,
                         layout, metadata, metadata_size, nullptr, nullptr);
}
AOTITorchError torch_from_blob(void* data, int64_t ndim, const int64_t* sizes,
                               const int64_t* strides, int64_t offset, int32_t dtype,
                               int32_t device_type, int32_t device_index, AtenTensorHandle* ret,
                               int32_t layout, const uint8_t*, int64_t,
                               void (*deleter)(void* data, void* context), void* context) {
  return stable::run([&] {
    const TensorOptions options = options_of(dtype, device_type, device_index);
    void* const from = shifted(data, offset, dtype);
    if (deleter == nullptr) {
      *ret = new_handle(
          strided(from_blob(from, ints(sizes, ndim), ints(strides, ndim), options), layout));
      return;
    }
    strided(Tensor(), layout);  // before the memory has an owner
    const auto free = [](void*, size_t, void* held) {
      const std::unique_ptr<Deleter> d(static_cast<Deleter*>(held));
      d->run(d->data, d->context);
    };
    *ret = new_handle(detail::from_owned_blob(from, ints(sizes, ndim), ints(strides, ndim), free,
                                              new Deleter{deleter, data, context}, options));
  });
}
AOTITorchError aoti_torch__reinterpret_tensor(AtenTensorHandle self, int64_t ndim,
                                              const int64_t* sizes, const int64_t* strides,
                                              int64_t offset, AtenTensorHandle* ret) {
  return stable::run([&] {
    const Tensor& t = tensor_of(self);
    *ret = new_handle(
        as_strided(t, ints(sizes, ndim), ints(strides, ndim), t.storage_offset() + offset));
  });
}
AOTITorchError aoti_torch_as_strided(AtenTensorHandle self, const int64_t* sizes,
                                     const int64_t* strides, AtenTensorHandle* ret) {
  return stable::run([&] {
    const Tensor& t = tensor_of(self);
    *ret = new_handle(as_strided(t, ints(sizes, t.dim()), ints(strides, t.dim())));
  });
}
AOTITorchError aoti_torch_clone(AtenTensorHandle self, AtenTensorHandle* ret) {
  return stable::run([&] { *ret = new_handle(clone(tensor_of(self))); });
}
AOTITorchError aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src, int32_t non_blocking) {
  return stable::run([&] { tensor_of(self).copy_(tensor_of(src), non_blocking != 0); });
}
AOTITorchError aoti_torch_zero_(AtenTensorHandle self) {
  return stable::run([&] { tensor_of(self).zero_(); });
}

// ---- ops with types of their own ----

AOTITorchError aoti_torch_aten_amax(AtenTensorHandle self, const int64_t* dim, int64_t dim_len,
                                    int32_t keepdim, AtenTensorHandle* ret) {
  return stable::run(
      [&] { *ret = new_handle(amax(tensor_of(self), ints(dim, dim_len), keepdim != 0)); });
}
AOTITorchError aoti_torch_aten_fill__Scalar(AtenTensorHandle self, double value) {
  return stable::run([&] { tensor_of(self).fill_(value); });
}
AOTITorchError aoti_torch_aten_full(const int64_t* size, int64_t size_len, double value,
                                    int32_t* dtype, int32_t* layout, int32_t* device_type,
                                    int32_t device_index, int32_t* pin_memory,
                                    AtenTensorHandle* ret) {
  return stable::run([&] {
    *ret = new_handle(full(ints(size, size_len), value,
                           options_of(dtype, layout, device_type, device_index, pin_memory)));
  });
}
AOTITorchError aoti_torch_aten_narrow(AtenTensorHandle self, int64_t dim, int64_t start,
                                      int64_t length, AtenTensorHandle* ret) {
  return stable::run([&] { *ret = new_handle(narrow(tensor_of(self), dim, start, length)); });
}
AOTITorchError aoti_torch_aten_new_empty(AtenTensorHandle self, const int64_t* size,
                                         int64_t size_len, int32_t* dtype, int32_t* layout,
                                         int32_t* device_type, int32_t device_index,
                                         int32_t* pin_memory, AtenTensorHandle* ret) {
  return stable::run([&] {
    *ret = new_handle(tensor_of(self).new_empty(
        ints(size, size_len), options_of(dtype, layout, device_type, device_index, pin_memory)));
  });
}
AOTITorchError aoti_torch_aten_new_zeros(AtenTensorHandle self, const int64_t* size,
                                         int64_t size_len, int32_t* dtype, int32_t* layout,
                                         int32_t* device_type, int32_t device_index,
                                         int32_t* pin_memory, AtenTensorHandle* ret) {
  return stable::run([&] {
    *ret = new_handle(tensor_of(self).new_zeros(
        ints(size, size_len), options_of(dtype, layout, device_type, device_index, pin_memory)));
  });
}
AOTITorchError aoti_torch_aten_pad(AtenTensorHandle self, const int64_t* list, int64_t pad_len,
                                   const char* mode, double* value, AtenTensorHandle* ret) {
  return stable::run([&] {
    *ret = new_handle(pad(tensor_of(self), ints(list, pad_len), mode,
                          value == nullptr ? std::nullopt : std::optional<double>(*value)));
  });
}
AOTITorchError aoti_torch_aten_subtract_Tensor(AtenTensorHandle self, AtenTensorHandle other,
                                               double alpha, AtenTensorHandle* ret) {
  return stable::run(
      [&] { *ret = new_handle(subtract(tensor_of(self), tensor_of(other), alpha)); });
}

// ---- gradients ----

AOTITorchError torch_set_requires_grad(AtenTensorHandle tensor, bool requires_grad) {
  return stable::run([&] { tensor_of(tensor).set_requires_grad(requires_grad); });
}
bool aoti_torch_grad_mode_is_enabled() { return tls.grad_mode; }
void aoti_torch_grad_mode_set_enabled(bool enabled) { tls.grad_mode = enabled; }

void aoti_torch_check(bool good, const char* function, const char* file, uint32_t line,
                      const char* message) {
  RL_CHECK(good, message, " (", function, " at ", file, ":", line, ")");
}
void aoti_torch_warn(const char*, const char*, uint32_t, const char* message) { warn(message); }

// ---- devices ----

AOTITorchError torch_parse_device_string(const char* text, uint32_t* type, int32_t* index) {
  return stable::run([&] {
    const Device device{std::string_view(text)};
    *type = static_cast<uint32_t>(stable::number_of(device.type()));
    *index = device.index();
  });
}
AOTITorchError aoti_torch_create_device_guard(int32_t index, DeviceGuardHandle* ret) {
  return stable::run([&] {
    *ret = new DeviceGuardOpaque{accelerator::exchangeDevice(static_cast<int8_t>(index))};
  });
}
AOTITorchError aoti_torch_delete_device_guard(DeviceGuardHandle guard) {
  return stable::run([&] {
    const std::unique_ptr<DeviceGuardOpaque> held(guard);
    accelerator::setDeviceIndex(held->before);
  });
}
AOTITorchError aoti_torch_device_guard_set_index(DeviceGuardHandle, int32_t index) {
  return stable::run([&] { accelerator::setDeviceIndex(static_cast<int8_t>(index)); });
}
AOTITorchError aoti_torch_get_current_device_index(int32_t* ret) {
  return stable::run([&] { *ret = accelerator::getDeviceIndex(); });
}
AOTITorchError aoti_torch_get_current_stream(int32_t index, StreamHandle* ret) {
  return stable::run(
      [&] { *ret = new StreamOpaque{accelerator::getCurrentStream(static_cast<int8_t>(index))}; });
}
AOTITorchError aoti_torch_stream_id(StreamHandle stream, int64_t* ret) {
  return stable::run([&] { *ret = static_cast<int64_t>(stream->stream.id()); });
}
AOTITorchError aoti_torch_delete_stream(StreamHandle stream) {
  return stable::run([&] { delete stream; });
}

// ---- threads and generators ----

AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t grain, ParallelFunc function,
                                  void* context) {
  return stable::run([&] {
    parallel_for(begin, end, std::max<int64_t>(grain, 1),
                 [&](int64_t b, int64_t e) { function(b, e, context); });
  });
}
AOTITorchError torch_get_thread_idx(uint32_t* ret) {
  return stable::run([&] { *ret = static_cast<uint32_t>(parallel_thread_index()); });
}
AOTITorchError torch_get_num_threads(uint32_t* ret) {
  return stable::run([&] { *ret = static_cast<uint32_t>(get_num_threads()); });
}
AOTITorchError torch_new_generator_handle(AtenGeneratorHandle self, AtenGeneratorHandle* ret) {
  return stable::run([&] {
    const auto& from = *reinterpret_cast<const Generator*>(self);
    *ret = reinterpret_cast<AtenGeneratorHandle>(new Generator(from));
  });
}
AOTITorchError torch_delete_generator(AtenGeneratorHandle generator) {
  return stable::run([&] { delete reinterpret_cast<Generator*>(generator); });
}
AOTITorchError torch_generator_get_device(AtenGeneratorHandle generator, int32_t* type,
                                          int32_t* index) {
  return stable::run([&] {
    const Device device = reinterpret_cast<const Generator*>(generator)->device();
    *type = stable::number_of(device.type());
    *index = device.index();
  });
}
