// Arguments and results as the stable ABI passes them: to<T>(value), which takes what the value
// owns, and from(x), whose value owns what it holds.
#pragma once

#include <cstring>
#include <optional>
#include <string_view>

#include <rushlight/stable/tensor.h>

#pragma GCC visibility push(hidden)  // each binary has its own
namespace torch {
namespace stable {
namespace detail {

// A number lies in the leading bytes.
template <class T>
StableIValue as_leading(T number) {
  static_assert(sizeof(T) <= sizeof(StableIValue) && std::is_trivially_copyable_v<T>,
                "the stable ABI has no form for values of this type");
  StableIValue out = 0;
  std::memcpy(&out, &number, sizeof number);
  return out;
}
template <class T>
T leading(StableIValue value) {
  static_assert(sizeof(T) <= sizeof(StableIValue) && std::is_trivially_copyable_v<T>,
                "the stable ABI has no form for values of this type");
  T out{};
  std::memcpy(&out, &value, sizeof out);
  return out;
}

template <class T, class = void>
struct Form {
  static StableIValue from(const T& v) { return as_leading(v); }
  static T to(StableIValue v) { return leading<T>(v); }
};
template <class T>
StableIValue from(const T& value) {
  return Form<T>::from(value);
}
template <class T>
T to(StableIValue value) {
  return Form<T>::to(value);
}

template <>
struct Form<float> {  // a double to the other side
  static StableIValue from(float v) { return as_leading(static_cast<double>(v)); }
  static float to(StableIValue v) { return static_cast<float>(leading<double>(v)); }
};
template <class T>  // an int64 to the other side
struct Form<T, std::enable_if_t<std::is_integral_v<T> && std::is_signed_v<T>>> {
  static StableIValue from(T v) { return as_leading(static_cast<int64_t>(v)); }
  static T to(StableIValue v) { return static_cast<T>(leading<int64_t>(v)); }
};
template <>
struct Form<bool> {
  static StableIValue from(bool v) { return as_leading(static_cast<uint8_t>(v ? 1 : 0)); }
  static bool to(StableIValue v) { return leading<uint8_t>(v) != 0; }
};
#define RL_FORM(T, read)                                                           \
  template <>                                                                      \
  struct Form<headeronly::T> {                                                     \
    static StableIValue from(headeronly::T v) { return as_leading(number_of(v)); } \
    static headeronly::T to(StableIValue v) { return read(leading<int32_t>(v)); }  \
  };
RL_FORM(ScalarType, dtype_of)
RL_FORM(Layout, layout_of)
RL_FORM(MemoryFormat, memory_format_of)
RL_FORM(DeviceType, device_type_of)
#undef RL_FORM
template <>
struct Form<Device> {
  static StableIValue from(const Device& v) {
    return static_cast<StableIValue>(number_of(v.type())) << 32 | static_cast<uint32_t>(v.index());
  }
  static Device to(StableIValue v) {
    return {device_type_of(static_cast<int32_t>(v >> 32)), static_cast<int32_t>(v)};
  }
};
template <>
struct Form<Tensor> {
  static StableIValue from(const Tensor& v) {
    AtenTensorHandle handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(v.get(), &handle));
    return as_leading(handle);
  }
  static Tensor to(StableIValue v) { return Tensor(leading<AtenTensorHandle>(v)); }
};
template <>
struct Form<std::nullopt_t> {
  static StableIValue from(std::nullopt_t) { return 0; }
};
template <class T>
struct Form<std::optional<T>> {
  static StableIValue from(const std::optional<T>& v) {
    return v.has_value() ? as_leading(new StableIValue(detail::from(*v))) : 0;
  }
  static std::optional<T> to(StableIValue v) {
    if (v == 0) {
      return std::nullopt;
    }
    const std::unique_ptr<StableIValue> box(leading<StableIValue*>(v));
    return detail::to<T>(*box);
  }
};

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
template <>
struct Form<std::string_view> {
  static StableIValue from(std::string_view v) {
    StringHandle handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_new_string_handle(v.data(), v.size(), &handle));
    return as_leading(handle);
  }
};
template <>
struct Form<std::string> {
  static StableIValue from(const std::string& v) { return Form<std::string_view>::from(v); }
  static std::string to(StableIValue v) {
    const auto handle = leading<StringHandle>(v);
    const char* text = nullptr;
    size_t size = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_string_c_str(handle, &text));
    STABLE_TORCH_ERROR_CODE_CHECK(torch_string_length(handle, &size));
    std::string out(text, size);
    STABLE_TORCH_ERROR_CODE_CHECK(torch_delete_string(handle));
    return out;
  }
};
template <>
struct Form<const char*> {
  static StableIValue from(const char* v) { return Form<std::string_view>::from(v); }
};
template <size_t n>
struct Form<char[n]> {
  static StableIValue from(const char (&v)[n]) { return Form<std::string_view>::from(v); }
};
template <class T>
struct Form<headeronly::HeaderOnlyArrayRef<T>> {
  static StableIValue from(headeronly::HeaderOnlyArrayRef<T> v) {
    StableListHandle list = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_new_list_reserve_size(v.size(), &list));
    for (const T& item : v) {
      STABLE_TORCH_ERROR_CODE_CHECK(torch_list_push_back(list, detail::from(item)));
    }
    return as_leading(list);
  }
};
template <class T>
struct Form<std::vector<T>> {
  static StableIValue from(const std::vector<T>& v) {
    StableListHandle list = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_new_list_reserve_size(v.size(), &list));
    for (const T& item : v) {  // those of vector<bool> are proxies
      STABLE_TORCH_ERROR_CODE_CHECK(torch_list_push_back(list, detail::from<T>(item)));
    }
    return as_leading(list);
  }
  static std::vector<T> to(StableIValue v) {
    const auto list = leading<StableListHandle>(v);
    size_t size = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_list_size(list, &size));
    std::vector<T> out;
    out.reserve(size);
    for (size_t i = 0; i < size; i++) {
      StableIValue item = 0;
      STABLE_TORCH_ERROR_CODE_CHECK(torch_list_get_item(list, i, &item));
      out.push_back(detail::to<T>(item));
    }
    STABLE_TORCH_ERROR_CODE_CHECK(torch_delete_list(list));
    return out;
  }
};
#endif
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
template <>
struct Form<Generator> {
  static StableIValue from(const Generator& v) {
    AtenGeneratorHandle handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_new_generator_handle(v.get(), &handle));
    return as_leading(handle);
  }
  static Generator to(StableIValue v) { return Generator(leading<AtenGeneratorHandle>(v)); }
};
#endif

}  // namespace detail
}  // namespace stable
}  // namespace torch
#pragma GCC visibility pop

// The names that extensions of PyTorch 2.9 use.
namespace {
template <class T>
[[maybe_unused]] inline StableIValue from(const T& value) {
  return torch::stable::detail::from(value);
}
template <class T>
[[maybe_unused]] inline T to(StableIValue value) {
  return torch::stable::detail::to<T>(value);
}
}  // namespace
