// torch::stable::Tensor, Device, Generator: handles of the stable ABI that give themselves back.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include <rushlight/stable/headeronly.h>

// Calls a function of the ABI and throws what it said, where it failed.
#define STABLE_TORCH_ERROR_CODE_CHECK(call)                            \
  do {                                                                 \
    if (RL_UNLIKELY((call) != AOTI_TORCH_SUCCESS)) {                   \
      ::torch::stable::detail::throw_error(#call, __FILE__, __LINE__); \
    }                                                                  \
  } while (false)
#define TORCH_ERROR_CODE_CHECK(call) STABLE_TORCH_ERROR_CODE_CHECK(call)

#pragma GCC visibility push(hidden)  // each binary has its own
namespace torch {
namespace stable {

namespace detail {
[[noreturn]] inline void throw_error(const char* call, const char* file, int line) {
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
  static_cast<void>(call);
  static_cast<void>(file);
  static_cast<void>(line);
  throw std::runtime_error(torch_exception_get_what_without_backtrace());
#else  // the text is only printed
  headeronly::fail(call, " failed at ", file, ":", line);
#endif
}

inline int32_t number_of(headeronly::DeviceType type) {
  switch (type) {
#define RL_CASE(name, Enum, ...)     \
  case headeronly::DeviceType::Enum: \
    return aoti_torch_device_type_##name();
    RL_FOR_EACH_STABLE_DEVICE(RL_CASE)
#undef RL_CASE
    default:
      headeronly::fail("the stable ABI has no number for this type of device");
  }
}
inline headeronly::DeviceType device_type_of(int32_t number) {
#define RL_CASE(name, Enum, ...)                   \
  if (number == aoti_torch_device_type_##name()) { \
    return headeronly::DeviceType::Enum;           \
  }
  RL_FOR_EACH_STABLE_DEVICE(RL_CASE)
#undef RL_CASE
  headeronly::fail("the type of device with the number ", number, " is not known here");
}
inline int32_t number_of(headeronly::ScalarType type) {
  switch (type) {
#define RL_CASE(name, Enum)          \
  case headeronly::ScalarType::Enum: \
    return aoti_torch_dtype_##name();
    RL_FOR_EACH_STABLE_DTYPE(RL_CASE)
#undef RL_CASE
    default:
      headeronly::fail("the stable ABI has no number for this dtype");
  }
}
inline headeronly::ScalarType dtype_of(int32_t number) {
#define RL_CASE(name, Enum)                  \
  if (number == aoti_torch_dtype_##name()) { \
    return headeronly::ScalarType::Enum;     \
  }
  RL_FOR_EACH_STABLE_DTYPE(RL_CASE)
#undef RL_CASE
  headeronly::fail("the dtype with the number ", number, " is not known here");
}
inline int32_t number_of(headeronly::Layout layout) {
  switch (layout) {
#define RL_CASE(name, Enum, ...) \
  case headeronly::Layout::Enum: \
    return aoti_torch_layout_##name();
    RL_FOR_EACH_STABLE_LAYOUT(RL_CASE)
#undef RL_CASE
  }
  headeronly::fail("the stable ABI has no number for this layout");
}
inline headeronly::Layout layout_of(int32_t number) {
#define RL_CASE(name, Enum, ...)              \
  if (number == aoti_torch_layout_##name()) { \
    return headeronly::Layout::Enum;          \
  }
  RL_FOR_EACH_STABLE_LAYOUT(RL_CASE)
#undef RL_CASE
  headeronly::fail("the layout with the number ", number, " is not known here");
}
inline int32_t number_of(headeronly::MemoryFormat format) {
  switch (format) {
#define RL_CASE(name, Enum)            \
  case headeronly::MemoryFormat::Enum: \
    return aoti_torch_memory_format_##name();
    RL_FOR_EACH_STABLE_MEMORY_FORMAT(RL_CASE)
#undef RL_CASE
  }
  headeronly::fail("the stable ABI has no number for this memory format");
}
inline headeronly::MemoryFormat memory_format_of(int32_t number) {
#define RL_CASE(name, Enum)                          \
  if (number == aoti_torch_memory_format_##name()) { \
    return headeronly::MemoryFormat::Enum;           \
  }
  RL_FOR_EACH_STABLE_MEMORY_FORMAT(RL_CASE)
#undef RL_CASE
  headeronly::fail("the memory format with the number ", number, " is not known here");
}
}  // namespace detail

namespace accelerator {
using DeviceIndex = int32_t;
}  // namespace accelerator
using headeronly::DeviceType;
using DeviceIndex = accelerator::DeviceIndex;

class Device {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
  // "cpu", "cuda:1".
  Device(const std::string& text) : type_(DeviceType::CPU), index_(-1) {
    uint32_t type = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_parse_device_string(text.c_str(), &type, &index_));
    type_ = detail::device_type_of(static_cast<int32_t>(type));
  }
#endif
  DeviceType type() const noexcept { return type_; }
  DeviceIndex index() const noexcept { return index_; }
  bool has_index() const noexcept { return index_ != -1; }
  void set_index(DeviceIndex index) { index_ = index; }
  bool is_cpu() const noexcept { return type_ == DeviceType::CPU; }
  bool is_cuda() const noexcept { return type_ == DeviceType::CUDA; }
  bool operator==(const Device& other) const noexcept {
    return type_ == other.type_ && index_ == other.index_;
  }
  bool operator!=(const Device& other) const noexcept { return !(*this == other); }

 private:
  DeviceType type_;
  DeviceIndex index_;
};

// Copies are the same tensor, as those of at::Tensor.
class Tensor {
 public:
  // Undefined, unlike a null handle.
  Tensor() {
    AtenTensorHandle made = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_new_uninitialized_tensor(&made));
    *this = Tensor(made);
  }
  // Takes the handle.
  explicit Tensor(AtenTensorHandle handle)
      : handle_(handle, [](AtenTensorHandle h) { aoti_torch_delete_tensor_object(h); }) {}
  AtenTensorHandle get() const { return handle_.get(); }

  void* data_ptr() const { return ask<void*>(aoti_torch_get_data_ptr); }
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
  void* mutable_data_ptr() const { return ask<void*>(torch_get_mutable_data_ptr); }
  const void* const_data_ptr() const { return ask<const void*>(torch_get_const_data_ptr); }
  const Tensor& set_requires_grad(bool on) const {
    STABLE_TORCH_ERROR_CODE_CHECK(torch_set_requires_grad(get(), on));
    return *this;
  }
#else
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
#endif
  // As elements of T, which is to be the tensor's dtype.
  template <class T>
  T* mutable_data_ptr() const {
    check_dtype<T>();
    return static_cast<T*>(mutable_data_ptr());
  }
  template <class T, std::enable_if_t<!std::is_const_v<T>, int> = 0>
  const T* const_data_ptr() const {
    check_dtype<T>();
    return static_cast<const T*>(const_data_ptr());
  }
  int64_t dim() const { return ask<int64_t>(aoti_torch_get_dim); }
  int64_t numel() const { return ask<int64_t>(aoti_torch_get_numel); }
  headeronly::IntHeaderOnlyArrayRef sizes() const {
    return {ask<int64_t*>(aoti_torch_get_sizes), static_cast<size_t>(dim())};
  }
  headeronly::IntHeaderOnlyArrayRef strides() const {
    return {ask<int64_t*>(aoti_torch_get_strides), static_cast<size_t>(dim())};
  }
  int64_t size(int64_t d) const {
    int64_t out = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_size(get(), d, &out));
    return out;
  }
  int64_t stride(int64_t d) const {
    int64_t out = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_stride(get(), d, &out));
    return out;
  }
  int64_t storage_offset() const { return ask<int64_t>(aoti_torch_get_storage_offset); }
  size_t element_size() const { return aoti_torch_dtype_element_size(dtype_number()); }
  bool is_contiguous() const { return ask<bool>(aoti_torch_is_contiguous); }
  bool defined() const { return ask<bool>(aoti_torch_is_defined); }
  headeronly::ScalarType scalar_type() const { return detail::dtype_of(dtype_number()); }
  headeronly::Layout layout() const {
    return detail::layout_of(ask<int32_t>(aoti_torch_get_layout));
  }
  Device device() const { return {device_type(), get_device_index()}; }
  DeviceIndex get_device_index() const { return ask<int32_t>(aoti_torch_get_device_index); }
  int8_t get_device() const { return static_cast<int8_t>(get_device_index()); }
  bool is_cpu() const { return device_type() == DeviceType::CPU; }
  bool is_cuda() const { return device_type() == DeviceType::CUDA; }

 private:
  template <class T>
  T ask(AOTITorchError (*question)(AtenTensorHandle, T*)) const {
    T out{};
    STABLE_TORCH_ERROR_CODE_CHECK(question(get(), &out));
    return out;
  }
  int32_t dtype_number() const { return ask<int32_t>(aoti_torch_get_dtype); }
  DeviceType device_type() const {
    return detail::device_type_of(ask<int32_t>(aoti_torch_get_device_type));
  }
  template <class T>
  void check_dtype() const {
    constexpr auto wanted = headeronly::CppTypeToScalarType<std::remove_const_t<T>>::value;
    const headeronly::ScalarType has = scalar_type();
    STD_TORCH_CHECK(has == wanted, "expected scalar type ", headeronly::toString(wanted),
                    " but found ", headeronly::toString(has));
  }
  std::shared_ptr<AtenTensorOpaque> handle_;
};

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
class Generator {
 public:
  // Takes the handle.
  explicit Generator(AtenGeneratorHandle handle)
      : handle_(handle, [](AtenGeneratorHandle h) { torch_delete_generator(h); }) {}
  AtenGeneratorHandle get() const { return handle_.get(); }
  Device device() const {
    int32_t type = 0;
    int32_t index = -1;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_generator_get_device(get(), &type, &index));
    return {detail::device_type_of(type), index};
  }

 private:
  std::shared_ptr<AtenGeneratorOpaque> handle_;
};
#endif

}  // namespace stable
}  // namespace torch
#pragma GCC visibility pop
