// What generated op wrappers and shape functions use: output specifications, making outputs,
// dimension checks. A shape function checks an op's contract and says what comes out:  OutSpec
// shape::softmax(const Tensor& self, int64_t& dim, ...). Non-tensor arguments arrive as mutable
// references, so it may normalise them for the kernel (wrap a negative dim, fill in a default);
// tensors arrive as `Tensor&` and may be replaced (`self = self.contiguous()`).
#pragma once

#include <atomic>
#include <algorithm>
#include <array>
#include <initializer_list>

#include <rushlight/autograd.h>
#include <rushlight/mode.h>
#include <rushlight/tensor.h>
#include <rushlight/thread_state.h>

namespace rushlight {

struct OutSpec {
  DimVector sizes;
  ScalarType dtype;
  DimVector strides = {};                          // empty: by format
  MemoryFormat format = MemoryFormat::Contiguous;  // Contiguous or ChannelsLast(3d)
};
template <size_t N>
using OutSpecs = std::array<OutSpec, N>;

// The tensors that an op reads, by address; null and undefined ones are passed over.
using InputList = ArrayRef<const Tensor*>;

// Geometry of a view: shares the storage of its base.
struct ViewSpec {
  DimVector sizes;
  DimVector strides;
  int64_t offset = 0;  // in elements of the result's dtype, absolute in the storage
  ScalarType dtype = ScalarType::Undefined;  // Undefined: that of the base
  bool contiguous = false;                   // the strides follow from the sizes
};

// -ndim..ndim-1 → 0..ndim-1; a 0-d tensor takes -1 and 0. IndexError for all others.
RL_API int64_t wrap_dim(int64_t dim, int64_t ndim);
// The same of a dimension whose size or stride is wanted: a 0-d tensor has none. IndexError.
RL_API int64_t existing_dim(int64_t dim, int64_t ndim);
// Wraps each; an empty list means all when `empty_is_all`; duplicates raise RuntimeError.
RL_API DimVector wrap_dims(IntArrayRef dims, int64_t ndim, bool empty_is_all = true);
RL_API DimVector contiguous_strides(IntArrayRef sizes);
// The stride of the dimension outside one of this size and stride; overflow raises RuntimeError.
RL_API int64_t next_stride(int64_t stride, int64_t size);
RL_API DimVector channels_last_strides(IntArrayRef sizes, MemoryFormat format);
// ChannelsLast or ChannelsLast3d where the elements lie so and not contiguously as well.
RL_API MemoryFormat format_of(const Tensor& t);
// RuntimeError where two sizes differ and neither is 1; it names both and their dimension.
RL_API DimVector broadcast_sizes(IntArrayRef a, IntArrayRef b);
RL_API bool is_expandable_to(IntArrayRef from, IntArrayRef to);
RL_API int64_t product(IntArrayRef sizes);  // overflow raises
RL_API DimVector reduced_sizes(IntArrayRef sizes, IntArrayRef wrapped_dims, bool keepdim);

// Uninitialised tensor. No op, no autograd: what kernels and wrappers allocate with.
RL_API Tensor make_empty(IntArrayRef sizes, ScalarType dtype, Device device);
RL_API Tensor make_empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype,
                                 Device device);
// The same on the CPU, contiguous where there are no strides, with memory that is allocated when
// its address is first taken. Strides are dense.
RL_API Tensor make_empty_later(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype);
RL_API Tensor make_output(const OutSpec& spec, Device device);
// Dense in the memory order of `like` (what preserve_format means), new dtype.
RL_API Tensor make_empty_like(const Tensor& like, ScalarType dtype);
RL_API DimVector preserved_strides(const Tensor& like);
RL_API Tensor make_view(const Tensor& base,
                        const ViewSpec& spec);  // bounds-checked against the storage

// Refuses an out= of another dtype than the one that is asked for.
RL_API void check_out_dtype(const char* op, std::optional<ScalarType> dtype, const Tensor& out);
// out= and in-place: checks the device, that the result can be cast to the dtype of `out` and that
// `out` does not overlap an input in part; resizes it (warning when it was not empty); returns the
// tensor that the kernel writes into: `out` itself, or a temporary where dtype or strides differ or
// where `out` shares memory with an input. `finish_out` copies a temporary back.
RL_API Tensor begin_out(const char* op, const Tensor& out, const OutSpec& spec, Device device,
                        InputList inputs);
RL_API void finish_out(const Tensor& out, const Tensor& written);
// Several outputs must not share memory. RuntimeError; null ones are passed over.
RL_API void check_outputs_apart(const char* op, InputList outputs);
// New contiguous sizes; the storage grows when needed and keeps its contents.
RL_API void resize_raw(const Tensor& t, IntArrayRef sizes);

// Whether memory that a program is given before anything is written there says so: NaN, or an
// integer dtype's greatest number.
RL_API extern std::atomic<bool> marks_unwritten;
RL_API void mark_unwritten(const Tensor& t);
// What `empty` and its like hand out.
inline Tensor mark_unwritten_if_asked(Tensor t) {
  if (RL_UNLIKELY(marks_unwritten.load(std::memory_order_relaxed))) {
    mark_unwritten(t);
  }
  return t;
}
RL_API void resize_out(const Tensor& out, IntArrayRef sizes);  // warns if it had elements

// Perhaps: where the layout of one has gaps, and the ranges of memory meet. PyTorch's rule: two
// dense tensors that overlap in part are an error, of others nobody knows.
enum class Overlap { No, Full, Partial, Perhaps };
RL_API Overlap memory_overlap(const Tensor& a, const Tensor& b);
RL_API bool has_internal_overlap(const Tensor& t);  // expanded
RL_API void check_no_internal_overlap(const char* op, const Tensor& t);
RL_API void check_no_partial_overlap(const char* op, Overlap overlap);

// The device of all defined tensors (0-d CPU tensors may meet others); RuntimeError where there are
// two.
RL_API Device common_device(const char* op, InputList tensors);
// Brings the 0-d CPU tensors among operands to the device where a kernel runs; `written` (or null)
// must lie there. Nothing to do on meta.
RL_API void move_numbers_to(const char* op, Device where, const Tensor* written,
                            std::initializer_list<Tensor*> operands);
inline void move_numbers(const char* op, Device where, const Tensor* written,
                         std::initializer_list<Tensor*> operands) {
  if (RL_UNLIKELY(!where.is_cpu())) {
    move_numbers_to(op, where, written, operands);
  }
}
[[noreturn]] RL_API void no_kernel(const char* op, Device device);  // NotImplementedError
template <class Table, class F>
F find_kernel(const Table* const* tables, Device device, F Table::* entry, const char* op) {
  const Table* table = tables[static_cast<int>(device.type())];
  if (RL_UNLIKELY(table == nullptr || table->*entry == nullptr)) {
    no_kernel(op, device);
  }
  return table->*entry;
}

// Error, naming the op and the argument, for an undefined tensor, alone or in a list.
[[noreturn]] RL_API void refuse_undefined(const char* op, const char* name);
inline void check_defined(const char* op, const char* name, const Tensor& t) {
  if (RL_UNLIKELY(!t.defined())) {
    refuse_undefined(op, name);
  }
}
inline void check_defined(const char* op, const char* name, TensorList list) {
  for (const Tensor& t : list) {
    check_defined(op, name, t);
  }
}

// A single int stands for N equal ones (int[2] stride=1); RuntimeError for any other length.
RL_API DimVector repeat_to(size_t n, const char* name, IntArrayRef list);
// `t`, or a copy of it where it shares memory with `out`, which is about to be written;
// RuntimeError where they overlap in part. `in_step`: elements are read where and just before they
// are written, so that the same tensor needs no copy.
RL_API Tensor copy_if_overlapping(const char* op, const Tensor& out, const Tensor& t,
                                  bool in_step = false);
// What a factory with out= works with: the options of `out`, which those that are given agree with.
RL_API TensorOptions options_of(const Tensor& out, const TensorOptions& given);
// The end of such a call: `made` has the dtype and the device of `out`, which may want its shape.
// `any_shape`: where it has as many elements, it keeps its own.
RL_API void fill_out(const char* op, const Tensor& out, const Tensor& made, bool any_shape,
                     bool requires_grad);
// The `out=` form of a composite: resizes `out`, casts `value` and copies it there.
RL_API void assign_out(const char* op, const Tensor& out, const Tensor& value);

// Whether something below autograd sees this call: a mode, or a special tensor among its tensors.
inline bool is_special(const Tensor& t) {
  return t.impl() != nullptr && t.impl()->special() != nullptr;
}
inline bool is_special(TensorList list) {
  return std::any_of(list.begin(), list.end(), [](const Tensor& t) { return is_special(t); });
}
inline bool is_special(const std::vector<std::optional<Tensor>>& list) {
  return std::any_of(list.begin(), list.end(),
                     [](const std::optional<Tensor>& t) { return t && is_special(*t); });
}
template <class... T>
bool has_handler_below(const T&... tensors) {
  return tls.lower() != nullptr || ((is_special(tensors) || ...) && tls.see_special);
}

// The slow path of a wrapper: boxes the arguments, unboxes what the handler returns.
template <class R>
R unbox_results(const std::vector<Value>& values) {
  if constexpr (std::is_void_v<R>) {
    return;
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return R(values.at(I).template get<std::tuple_element_t<I, R>>()...);
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else {
    return values.at(0).template get<R>();
  }
}
using Dispatch = std::vector<Value> (*)(const OpFunction& function, std::vector<Value> arguments);
inline std::vector<Value> box_results(Tensor t) { return {Value(std::move(t))}; }
inline std::vector<Value> box_results(std::vector<Tensor> t) { return {Value(std::move(t))}; }
template <class... T>
std::vector<Value> box_results(std::tuple<T...> results) {
  return std::apply([](auto&... r) { return std::vector<Value>{Value(std::move(r))...}; }, results);
}
template <class T>
  requires(std::is_arithmetic_v<T> || std::is_same_v<T, Scalar> || std::is_same_v<T, ScalarType>)
std::vector<Value> box_results(T v) {
  return {Value(v)};
}

RL_API Scalar read_number(const Tensor& t);  // the element of a tensor that has one

// A factory's result, made a leaf that requires grad when asked; RuntimeError for dtypes without
// gradients.
RL_API Tensor as_leaf(const Tensor& made, bool requires_grad);

// Options that say a memory format are split: what they say beside it goes to the factory with what
// `format_of` gives, and `in_format` puts the result into the format and makes it a leaf.
RL_API TensorOptions without_format(const TensorOptions& options);
// RuntimeError where both say one.
RL_API std::optional<MemoryFormat> format_of(const TensorOptions& options,
                                             std::optional<MemoryFormat> memory_format);
RL_API Tensor in_format(const Tensor& made, const TensorOptions& options);

// Copies between any two layouts and dtypes with broadcasting; below autograd and modes.
// Between devices the host waits unless `non_blocking` allows it not to. (src/cpu/copy.cpp)
RL_API void copy_raw(const Tensor& to, const Tensor& from, bool non_blocking = false);
RL_API void fill_raw(const Tensor& to, const Scalar& value);
// Below autograd: `t` itself when it fits, else a view or a copy.
RL_API Tensor expand_raw(const Tensor& t, IntArrayRef sizes);
RL_API Tensor cast_raw(const Tensor& t, ScalarType dtype);
RL_API Tensor contiguous_raw(const Tensor& t, MemoryFormat format = MemoryFormat::Contiguous);

}  // namespace rushlight
