// torch::stable's functions: ops through the stable ABI, threads, memory as tensors; `call` for any
// other op of whichever library runs.
#pragma once

#include <optional>
#include <utility>

#include <rushlight/stable/values.h>

#pragma GCC visibility push(hidden)  // each binary has its own
namespace torch {
namespace stable {

// Calls op "aten::name" with all the arguments of its schema: call<Tensor>("aten::relu", "", x).
template <class Result = Tensor, class... A>
Result call(const char* name, const char* overload, const A&... arguments) {
  StableIValue stack[sizeof...(A) + 1] = {detail::from(arguments)...};
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher(name, overload, stack, TORCH_FEATURE_VERSION));
#else
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_call_dispatcher(name, overload, stack));
#endif
  return detail::to<Result>(stack[0]);
}

using headeronly::IntHeaderOnlyArrayRef;
using OptionalType = std::optional<headeronly::ScalarType>;
using OptionalLayout = std::optional<headeronly::Layout>;
using OptionalDevice = std::optional<Device>;
using OptionalFormat = std::optional<headeronly::MemoryFormat>;

namespace detail {
// What dtypes and the like are for the functions that take pointers to them.
struct FactoryOptions {
  FactoryOptions(OptionalType type, OptionalLayout form, OptionalDevice place,
                 std::optional<bool> pin) {
    dtype = type ? number_of(*type) : 0;
    layout = form ? number_of(*form) : 0;
    device = place ? number_of(place->type()) : 0;
    index = place ? place->index() : 0;
    pinned = pin && *pin ? 1 : 0;
    has_dtype = type.has_value();
    has_layout = form.has_value();
    has_device = place.has_value();
    has_pinned = pin.has_value();
  }
  int32_t* dtype_or_null() { return has_dtype ? &dtype : nullptr; }
  int32_t* layout_or_null() { return has_layout ? &layout : nullptr; }
  int32_t* device_or_null() { return has_device ? &device : nullptr; }
  int32_t* pinned_or_null() { return has_pinned ? &pinned : nullptr; }
  int32_t dtype, layout, device, index, pinned;
  bool has_dtype, has_layout, has_device, has_pinned;
};
inline int64_t length(IntHeaderOnlyArrayRef list) { return static_cast<int64_t>(list.size()); }
template <class... A, class... G>
Tensor made_by(AOTITorchError (*function)(A...), G... given) {
  AtenTensorHandle out = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(function(given..., &out));
  return Tensor(out);
}
}  // namespace detail

// ---- new tensors ----

inline Tensor new_empty(const Tensor& self, IntHeaderOnlyArrayRef size, OptionalType dtype = {},
                        OptionalLayout layout = {}, OptionalDevice device = {},
                        std::optional<bool> pin_memory = {}) {
  detail::FactoryOptions o(dtype, layout, device, pin_memory);
  return detail::made_by(aoti_torch_aten_new_empty, self.get(), size.data(), detail::length(size),
                         o.dtype_or_null(), o.layout_or_null(), o.device_or_null(), o.index,
                         o.pinned_or_null());
}
inline Tensor new_zeros(const Tensor& self, IntHeaderOnlyArrayRef size, OptionalType dtype = {},
                        OptionalLayout layout = {}, OptionalDevice device = {},
                        std::optional<bool> pin_memory = {}) {
  detail::FactoryOptions o(dtype, layout, device, pin_memory);
  return detail::made_by(aoti_torch_aten_new_zeros, self.get(), size.data(), detail::length(size),
                         o.dtype_or_null(), o.layout_or_null(), o.device_or_null(), o.index,
                         o.pinned_or_null());
}
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
inline Tensor empty(IntHeaderOnlyArrayRef size, OptionalType dtype = {}, OptionalLayout layout = {},
                    OptionalDevice device = {}, std::optional<bool> pin_memory = {},
                    OptionalFormat memory_format = {}) {
  return call("aten::empty", "memory_format", size, dtype, layout, device, pin_memory,
              memory_format);
}
inline Tensor full(IntHeaderOnlyArrayRef size, double value, OptionalType dtype = {},
                   OptionalLayout layout = {}, OptionalDevice device = {},
                   std::optional<bool> pin_memory = {}) {
  detail::FactoryOptions o(dtype, layout, device, pin_memory);
  return detail::made_by(aoti_torch_aten_full, size.data(), detail::length(size), value,
                         o.dtype_or_null(), o.layout_or_null(), o.device_or_null(), o.index,
                         o.pinned_or_null());
}
#endif
inline Tensor empty_like(const Tensor& self) {
  return call("aten::empty_like", "", self, OptionalType(), OptionalLayout(), OptionalDevice(),
              std::optional<bool>(), OptionalFormat());
}

// The memory of others as a tensor: it outlives the tensor and all that share it.
inline Tensor from_blob(void* data, IntHeaderOnlyArrayRef sizes, IntHeaderOnlyArrayRef strides,
                        Device device, headeronly::ScalarType dtype, int64_t storage_offset = 0,
                        headeronly::Layout layout = headeronly::Layout::Strided) {
  AtenTensorHandle out = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_create_tensor_from_blob_v2(
      data, detail::length(sizes), sizes.data(), strides.data(), storage_offset,
      detail::number_of(dtype), detail::number_of(device.type()), device.index(), &out,
      detail::number_of(layout), nullptr, 0));
  return Tensor(out);
}
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_11_0
// `deleter(data)` runs when the last tensor on it is gone.
template <class F, std::enable_if_t<std::is_invocable_v<F, void*>, int> = 0>
Tensor from_blob(void* data, IntHeaderOnlyArrayRef sizes, IntHeaderOnlyArrayRef strides,
                 Device device, headeronly::ScalarType dtype, F deleter, int64_t storage_offset = 0,
                 headeronly::Layout layout = headeronly::Layout::Strided) {
  auto held = std::make_unique<F>(std::move(deleter));
  const auto run = [](void* memory, void* context) {
    const std::unique_ptr<F> f(static_cast<F*>(context));
    (*f)(memory);
  };
  AtenTensorHandle out = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_from_blob(data, detail::length(sizes), sizes.data(), strides.data(), storage_offset,
                      detail::number_of(dtype), detail::number_of(device.type()), device.index(),
                      &out, detail::number_of(layout), nullptr, 0, run, held.get()));
  held.release();
  return Tensor(out);
}
#endif

// ---- in place ----

inline Tensor fill_(const Tensor& self, double value) {
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_aten_fill__Scalar(self.get(), value));
  return self;
}
inline Tensor zero_(Tensor& self) { return call("aten::zero_", "", self); }
inline Tensor copy_(Tensor& self, const Tensor& src, std::optional<bool> non_blocking = {}) {
  return call("aten::copy_", "", self, src, non_blocking.value_or(false));
}

// ---- the same elements otherwise ----

inline Tensor clone(const Tensor& self) { return call("aten::clone", "", self, OptionalFormat()); }
inline Tensor narrow(Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return detail::made_by(aoti_torch_aten_narrow, self.get(), dim, start, length);
}
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return call("aten::transpose", "int", self, dim0, dim1);
}
inline Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1) {
  return call("aten::flatten", "using_ints", self, start_dim, end_dim);
}
inline Tensor unsqueeze(const Tensor& self, int64_t dim) {
  return call("aten::unsqueeze", "", self, dim);
}
inline Tensor squeeze(const Tensor& self, int64_t dim) {
  return call("aten::squeeze", "dim", self, dim);
}
inline Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  return call("aten::select", "int", self, dim, index);
}
inline Tensor pad(const Tensor& self, IntHeaderOnlyArrayRef pad,
                  const std::string& mode = "constant", double value = 0.0) {
  return detail::made_by(aoti_torch_aten_pad, self.get(), pad.data(), detail::length(pad),
                         mode.c_str(), &value);
}
inline Tensor contiguous(const Tensor& self,
                         headeronly::MemoryFormat format = headeronly::MemoryFormat::Contiguous) {
  return call("aten::contiguous", "", self, format);
}
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
inline Tensor reshape(const Tensor& self, IntHeaderOnlyArrayRef shape) {
  return call("aten::reshape", "", self, shape);
}
inline Tensor view(const Tensor& self, IntHeaderOnlyArrayRef size) {
  return call("aten::view", "", self, size);
}
inline Tensor to(const Tensor& self, OptionalType dtype = {}, OptionalLayout layout = {},
                 OptionalDevice device = {}, std::optional<bool> pin_memory = {},
                 bool non_blocking = false, bool copy = false, OptionalFormat format = {}) {
  return call("aten::to", "dtype_layout", self, dtype, layout, device, pin_memory, non_blocking,
              copy, format);
}
inline Tensor to(const Tensor& self, Device device, bool non_blocking = false, bool copy = false) {
  return to(self, OptionalType(), OptionalLayout(), device, std::nullopt, non_blocking, copy);
}
#endif

// ---- arithmetic ----

inline Tensor amax(const Tensor& self, IntHeaderOnlyArrayRef dims, bool keepdim = false) {
  return detail::made_by(aoti_torch_aten_amax, self.get(), dims.data(), detail::length(dims),
                         static_cast<int32_t>(keepdim));
}
inline Tensor amax(const Tensor& self, int64_t dim, bool keepdim = false) {
  return amax(self, IntHeaderOnlyArrayRef(&dim, 1), keepdim);
}
inline Tensor matmul(const Tensor& self, const Tensor& other) {
  return call("aten::matmul", "", self, other);
}
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
inline Tensor subtract(const Tensor& self, const Tensor& other, double alpha = 1.0) {
  return detail::made_by(aoti_torch_aten_subtract_Tensor, self.get(), other.get(), alpha);
}
inline Tensor sum(const Tensor& self, std::optional<IntHeaderOnlyArrayRef> dim = {},
                  bool keepdim = false, OptionalType dtype = {}) {
  return call("aten::sum", "dim_IntList", self, dim, keepdim, dtype);
}
inline Tensor& sum_out(Tensor& out, const Tensor& self,
                       std::optional<IntHeaderOnlyArrayRef> dim = {}, bool keepdim = false,
                       OptionalType dtype = {}) {
  call("aten::sum", "IntList_out", self, dim, keepdim, dtype, out);
  return out;
}

// ---- threads ----

// f(b, e) for parts of [begin, end), on several threads.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  const auto run = [](int64_t b, int64_t e, void* context) {
    (*static_cast<const F*>(context))(b, e);
  };
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_parallel_for(begin, end, grain, run, const_cast<void*>(static_cast<const void*>(&f))));
}
inline uint32_t get_num_threads() {
  uint32_t out = 1;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_get_num_threads(&out));
  return out;
}
#endif

}  // namespace stable
}  // namespace torch
#pragma GCC visibility pop
