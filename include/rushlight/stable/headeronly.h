// torch::headeronly: dtypes and their types, layouts, devices, checks and dispatch by dtype for
// libraries of ops that are to load in PyTorch as well. All of it is inline.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <rushlight/dispatch_macros.h>
#include <rushlight/device.h>
#include <rushlight/dtype.h>
#include <rushlight/stable/abi.h>

#pragma GCC visibility push(hidden)  // each binary has its own
namespace torch {
namespace headeronly {

using ::rushlight::BFloat16;
using ::rushlight::complex;
using ::rushlight::CppTypeToScalarType;
using ::rushlight::DeviceType;
using ::rushlight::Float8_e4m3fn;
using ::rushlight::Float8_e4m3fnuz;
using ::rushlight::Float8_e5m2;
using ::rushlight::Float8_e5m2fnuz;
using ::rushlight::Half;
using ::rushlight::Layout;
using ::rushlight::MemoryFormat;
using ::rushlight::ScalarType;

using ::rushlight::kBFloat16;
using ::rushlight::kBool;
using ::rushlight::kByte;
using ::rushlight::kChar;
using ::rushlight::kComplexDouble;
using ::rushlight::kComplexFloat;
using ::rushlight::kComplexHalf;
using ::rushlight::kDouble;
using ::rushlight::kFloat;
using ::rushlight::kFloat8_e4m3fn;
using ::rushlight::kFloat8_e4m3fnuz;
using ::rushlight::kFloat8_e5m2;
using ::rushlight::kFloat8_e5m2fnuz;
using ::rushlight::kHalf;
using ::rushlight::kInt;
using ::rushlight::kLong;
using ::rushlight::kShort;
using ::rushlight::kUInt16;
using ::rushlight::kUInt32;
using ::rushlight::kUInt64;

using ::rushlight::kCPU;
using ::rushlight::kCUDA;
using ::rushlight::kMeta;
using ::rushlight::kMPS;
using ::rushlight::kPrivateUse1;
using ::rushlight::kSparse;
using ::rushlight::kSparseBsc;
using ::rushlight::kSparseBsr;
using ::rushlight::kSparseCsc;
using ::rushlight::kSparseCsr;
using ::rushlight::kStrided;
using ::rushlight::kXPU;

namespace impl {
using ::rushlight::impl::ScalarTypeToCPPTypeT;
}  // namespace impl

inline const char* toString(ScalarType type) {
  switch (type) {
#define RL_CASE(T, Enum, ...) \
  case ScalarType::Enum:      \
    return #Enum;
    RL_FOR_EACH_DTYPE(RL_CASE)
#undef RL_CASE
    case ScalarType::Undefined:
      break;
  }
  return "Undefined";
}

// ---- checks ----

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw std::runtime_error(text.str());
}

// With what the caller says of it, else the condition itself.
template <class... Parts>
[[noreturn]] void fail_check(const char* condition, const Parts&... parts) {
  if constexpr (sizeof...(Parts) == 0) {
    fail(condition);
  } else {
    fail(parts...);
  }
}

// f(tag of the type) for the dtype, which is to be one of a set.
template <uint32_t set, class F>
decltype(auto) visit(const char* name, ScalarType type, const F& f) {
  switch (type) {
#define RL_CASE(T, Enum, ...)                                                \
  case ScalarType::Enum:                                                     \
    if constexpr ((set & (1u << static_cast<int>(ScalarType::Enum))) != 0) { \
      return f(::rushlight::TypeTag<T>{});                                   \
    }                                                                        \
    break;
    RL_FOR_EACH_DTYPE(RL_CASE)
#undef RL_CASE
    default:
      break;
  }
  fail('"', name, "\" not implemented for '", headeronly::toString(type), "'");
}

// ---- lists of others ----

template <class T>
class HeaderOnlyArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;

  constexpr HeaderOnlyArrayRef() = default;
  constexpr HeaderOnlyArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr HeaderOnlyArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr HeaderOnlyArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<size_t>(end - begin)) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // lists live as long as the call
  constexpr HeaderOnlyArrayRef(const std::initializer_list<T>& list)
      : data_(list.begin()), size_(list.size()) {}
#pragma GCC diagnostic pop
  template <size_t n>
  constexpr HeaderOnlyArrayRef(const T (&list)[n]) : data_(list), size_(n) {}
  template <class List, class = std::enable_if_t<std::is_convertible_v<
                            decltype(std::declval<const List&>().data()), const T*>>>
  constexpr HeaderOnlyArrayRef(const List& list) : data_(list.data()), size_(list.size()) {}

  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* cbegin() const { return begin(); }
  constexpr const T* cend() const { return end(); }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& at(size_t i) const {
    if (i >= size_) {
      fail("HeaderOnlyArrayRef: index ", i, " of a list of length ", size_);
    }
    return data_[i];
  }
  constexpr const T& front() const { return at(0); }
  constexpr const T& back() const { return at(size_ - 1); }
  // `length` items from `start` on; all that follow.
  constexpr HeaderOnlyArrayRef slice(size_t start, size_t length) const {
    if (start > size_ || length > size_ - start) {
      fail("HeaderOnlyArrayRef: ", length, " items from ", start, " on, of a list of length ",
           size_);
    }
    return {data_ + start, length};
  }
  constexpr HeaderOnlyArrayRef slice(size_t start) const { return slice(start, size_ - start); }
  constexpr bool equals(HeaderOnlyArrayRef other) const {
    if (size_ != other.size_) {
      return false;
    }
    for (size_t i = 0; i < size_; i++) {
      if (!(data_[i] == other.data_[i])) {
        return false;
      }
    }
    return true;
  }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  friend constexpr bool operator==(HeaderOnlyArrayRef a, HeaderOnlyArrayRef b) {
    return a.equals(b);
  }
  friend constexpr bool operator!=(HeaderOnlyArrayRef a, HeaderOnlyArrayRef b) {
    return !a.equals(b);
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
using IntHeaderOnlyArrayRef = HeaderOnlyArrayRef<int64_t>;

// ---- elements by index ----

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T, size_t n, template <class> class Traits = DefaultPtrTraits,
          class index_t = int64_t>
class HeaderOnlyTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  HeaderOnlyTensorAccessor(PtrType data, const index_t* sizes, const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  decltype(auto) operator[](index_t i) const {
    if constexpr (n == 1) {
      return (data_[i * strides_[0]]);
    } else {
      return HeaderOnlyTensorAccessor<T, n - 1, Traits, index_t>(data_ + i * strides_[0],
                                                                 sizes_ + 1, strides_ + 1);
    }
  }
  index_t size(index_t d) const { return sizes_[d]; }
  index_t stride(index_t d) const { return strides_[d]; }
  HeaderOnlyArrayRef<index_t> sizes() const { return {sizes_, n}; }
  HeaderOnlyArrayRef<index_t> strides() const { return {strides_, n}; }
  PtrType data() const { return data_; }

 private:
  PtrType data_;
  const index_t* sizes_;
  const index_t* strides_;
};

}  // namespace headeronly
}  // namespace torch
#pragma GCC visibility pop

namespace c10 {
using torch::headeronly::HeaderOnlyArrayRef;
}  // namespace c10

// A condition of the caller; what follows it are the parts of the message.
#define STD_TORCH_CHECK(condition, ...)                                                   \
  do {                                                                                    \
    if (RL_UNLIKELY(!(condition))) {                                                      \
      ::torch::headeronly::fail_check("expected " #condition __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                     \
  } while (false)

// THO_DISPATCH_SWITCH(type, "name", THO_DISPATCH_CASE(kFloat, [&] {…}) …): a body for each dtype.
#define THO_DISPATCH_CASE(DTYPE, ...) AT_DISPATCH_CASE(DTYPE, __VA_ARGS__)
#define THO_DISPATCH_SWITCH(TYPE, NAME, ...)                                     \
  [&] {                                                                          \
    const ::rushlight::ScalarType rl_dtype = TYPE;                               \
    switch (rl_dtype) {                                                          \
      __VA_ARGS__                                                                \
      default:                                                                   \
        ::torch::headeronly::fail('"', NAME, "\" not implemented for '",         \
                                  ::torch::headeronly::toString(rl_dtype), "'"); \
    }                                                                            \
  }()
// THO_DISPATCH_V2(type, "name", AT_WRAP([&] {…}), AT_EXPAND(AT_ALL_TYPES), kHalf): one for all.
#define THO_DISPATCH_V2(TYPE, NAME, BODY, ...)                                                \
  ::torch::headeronly::visit<::rushlight::set_of(__VA_ARGS__)>(NAME, TYPE, [&](auto rl_tag) { \
    using scalar_t [[maybe_unused]] = typename decltype(rl_tag)::type;                        \
    return (BODY)();                                                                          \
  })
