// Names that libtorch has for things of rushlight, and its macros.
#pragma once

#include <optional>
#include <string_view>

#include <rushlight/dispatch_macros.h>
#include <rushlight/factories.h>
#include <rushlight/parallel.h>
#include <rushlight/print.h>
#include <rushlight/stream.h>
#include <rushlight/thread_state.h>

namespace rushlight {

using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using std::string_view;
using DeleterFnPtr = void (*)(void*);
using IntList = IntArrayRef;
inline constexpr DeviceType COMPILE_TIME_MAX_DEVICE_TYPES =
    DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES;
using DeviceIndex = int8_t;
inline constexpr DeviceType kMETA = kMeta;
inline MemoryFormat get_contiguous_memory_format() { return MemoryFormat::Contiguous; }

inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
using caffe2::TypeMeta;
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions device(DeviceType d) { return TensorOptions(d); }
inline TensorOptions device_index(int8_t index) { return TensorOptions(Device(kCUDA, index)); }
inline TensorOptions layout(Layout l) { return TensorOptions(l); }
inline TensorOptions requires_grad(bool v = true) { return TensorOptions().requires_grad(v); }
inline ScalarType typeMetaToScalarType(caffe2::TypeMeta t) { return t.toScalarType(); }
inline ScalarType typeMetaToScalarType(ScalarType t) { return t; }
inline std::optional<ScalarType> optTypeMetaToScalarType(std::optional<ScalarType> t) { return t; }
inline bool isFloatingType(ScalarType t) { return is_floating(t); }
inline bool isIntegralType(ScalarType t, bool include_bool = false) {
  return is_integral(t) || (include_bool && t == kBool);
}
inline bool isComplexType(ScalarType t) { return is_complex(t); }
inline bool isReducedFloatingType(ScalarType t) { return is_floating(t) && itemsize(t) < 4; }
inline bool isFloat8Type(ScalarType t) { return is_floating(t) && itemsize(t) == 1; }
inline bool isSignedType(ScalarType t) { return dtype_info(t).is_signed; }
inline ScalarType toRealValueType(ScalarType t) { return is_complex(t) ? to_real(t) : t; }
inline ScalarType toComplexType(ScalarType t) { return is_complex(t) ? t : to_complex(t); }
inline caffe2::TypeMeta scalarTypeToTypeMeta(ScalarType t) { return caffe2::TypeMeta(t); }
inline int64_t elementSize(ScalarType t) { return itemsize(t); }
inline const char* toString(ScalarType t) { return enum_name(t); }
inline bool is_grad_enabled() { return tls.grad_mode; }
inline ScalarType get_default_dtype_as_scalartype() { return get_default_dtype(); }

// What Tensor::type() gives: the dtype and the device, in one value.
class DeprecatedTypeProperties {
 public:
  DeprecatedTypeProperties(ScalarType dtype, Device device, Layout layout)
      : dtype_(dtype), device_(device), layout_(layout) {}
  ScalarType scalarType() const { return dtype_; }
  caffe2::TypeMeta typeMeta() const { return caffe2::TypeMeta(dtype_); }
  operator ScalarType() const { return dtype_; }
  operator TensorOptions() const { return options(); }
  DeviceType device_type() const { return device_.type(); }
  Layout layout() const { return layout_; }
  bool is_cuda() const { return device_.is_cuda(); }
  bool is_sparse() const { return layout_ == kSparse; }
  // "CPUFloatType", "CUDALongType".
  std::string toString() const {
    return str(device_.is_cuda()   ? "CUDA"
               : device_.is_meta() ? "Meta"
                                   : "CPU",
               enum_name(dtype_), "Type");
  }
  TensorOptions options(int16_t index = -1) const {
    const auto at = index >= 0 ? static_cast<int8_t>(index) : device_.index();
    return TensorOptions(dtype_).device(Device(device_.type(), at)).layout(layout_);
  }
  friend bool operator==(const DeprecatedTypeProperties& a, const DeprecatedTypeProperties& b) {
    return a.dtype_ == b.dtype_ && a.device_.type() == b.device_.type() && a.layout_ == b.layout_;
  }
  friend bool operator!=(const DeprecatedTypeProperties& a, const DeprecatedTypeProperties& b) {
    return !(a == b);
  }

 private:
  ScalarType dtype_;
  Device device_;
  Layout layout_;
};
inline DeprecatedTypeProperties Tensor::type() const { return {scalar_type(), device(), layout()}; }

namespace autograd_api {
// For code that writes into the memory of a tensor: who saved it for backward is to know.
inline void increment_version(const Tensor& t) { t.impl()->bump_version(); }
}  // namespace autograd_api

// The current device of its kind for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) : type_(device.type()) {
    if (!device.is_cpu()) {
      before_ = current_device(type_);
      set_current_device(device);
    }
  }
  ~DeviceGuard() {
    if (before_ >= 0) {
      set_current_device(Device(type_, static_cast<int8_t>(before_)));
    }
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  DeviceType type_;
  int before_ = -1;
};
// The same where there is a device.
class OptionalDeviceGuard {
 public:
  explicit OptionalDeviceGuard(std::optional<Device> device = {}) { reset_device(device); }
  void reset_device(std::optional<Device> device) {
    guard_.reset();
    if (device.has_value()) {
      guard_.emplace(*device);
    }
  }

 private:
  std::optional<DeviceGuard> guard_;
};

// What elements of a dtype are computed in.
template <class T>
struct OpMathType {
  using type = std::conditional_t<is_small_float_v<T>, float, T>;
};
template <>
struct OpMathType<complex<Half>> {
  using type = complex<float>;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;
// The dtype of the parts of a number.
template <class T>
struct scalar_value_type {
  using type = T;
};
template <class T>
struct scalar_value_type<complex<T>> {
  using type = T;
};

// Floats of 16 bits and less compute in float; among themselves and with integers the result is
// rounded to their kind, with wider floats when it is assigned.
#define RL_SMALL_FLOATS(op)                                                          \
  template <class T, std::enable_if_t<is_small_float_v<T>, int> = 0>                 \
  T operator op(T a, T b) {                                                          \
    return static_cast<T>(static_cast<float>(a) op static_cast<float>(b));           \
  }                                                                                  \
  template <class T, class N,                                                        \
            std::enable_if_t<is_small_float_v<T> && std::is_integral_v<N>, int> = 0> \
  T operator op(T a, N b) {                                                          \
    return static_cast<T>(static_cast<float>(a) op static_cast<float>(b));           \
  }                                                                                  \
  template <class T, class N,                                                        \
            std::enable_if_t<is_small_float_v<T> && std::is_integral_v<N>, int> = 0> \
  T operator op(N a, T b) {                                                          \
    return static_cast<T>(static_cast<float>(a) op static_cast<float>(b));           \
  }                                                                                  \
  template <class T, std::enable_if_t<is_small_float_v<T>, int> = 0>                 \
  T& operator op## = (T & a, float b) {                                              \
    return a = static_cast<T>(static_cast<float>(a) op b);                           \
  }
RL_SMALL_FLOATS(+)
RL_SMALL_FLOATS(-)
RL_SMALL_FLOATS(*)
RL_SMALL_FLOATS(/)
#undef RL_SMALL_FLOATS

namespace internal {
inline constexpr int64_t GRAIN_SIZE = 32768;  // of parallel_for, where an element is a few steps
}  // namespace internal

template <class Ignored = void>
Generator make_generator(uint64_t seed) {
  Generator g{Device(kCPU)};
  g.set_current_seed(seed);
  return g;
}
namespace detail {
inline Generator createCPUGenerator(uint64_t seed = 67280421310721ULL) {
  return make_generator<>(seed);
}
inline const Generator& getDefaultCPUGenerator() { return default_generator(); }
}  // namespace detail

namespace cuda {
inline int64_t device_count() { return rushlight::device_count(kCUDA); }
inline bool is_available() { return device_count() > 0; }
inline bool cudnn_is_available() { return is_available(); }
inline void synchronize(int64_t index = -1) {
  rushlight::synchronize(Device(kCUDA, static_cast<int8_t>(index)));
}
inline void manual_seed(uint64_t seed) { manual_seed_devices(seed); }
inline void manual_seed_all(uint64_t seed) { manual_seed_devices(seed); }
}  // namespace cuda
// Devices that there are none of.
namespace mps {
inline bool is_available() { return false; }
inline size_t device_count() { return 0; }
}  // namespace mps
namespace xpu {
inline bool is_available() { return false; }
inline size_t device_count() { return 0; }
}  // namespace xpu

}  // namespace rushlight

// A statement that wants no semicolon, as programs leave it out.
#define TORCH_CHECK(condition, ...)                                            \
  if (RL_UNLIKELY(!(condition))) {                                             \
    throw ::rushlight::Error(::rushlight::check_text(                          \
        "Expected " #condition " to be true, but got false.", ##__VA_ARGS__)); \
  }
#define TORCH_INTERNAL_ASSERT(condition, ...)                                               \
  RL_CHECK(condition, #condition " INTERNAL ASSERT FAILED at " __FILE__ ":", __LINE__, ' ', \
           ::rushlight::check_text("", ##__VA_ARGS__))
#define AT_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#define AT_ASSERTM(...) TORCH_CHECK(__VA_ARGS__)
#define AT_CHECK(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ERROR(...) throw ::rushlight::Error(::rushlight::str(__VA_ARGS__))
#define TORCH_CHECK_INDEX(condition, ...) \
  RL_CHECK_INDEX(condition, ::rushlight::check_text("", ##__VA_ARGS__))
#define TORCH_CHECK_VALUE(condition, ...) \
  RL_CHECK_VALUE(condition, ::rushlight::check_text("", ##__VA_ARGS__))
#define TORCH_CHECK_TYPE(condition, ...) \
  RL_CHECK_TYPE(condition, ::rushlight::check_text("", ##__VA_ARGS__))
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  RL_CHECK_NOT_IMPLEMENTED(condition, ::rushlight::check_text("", ##__VA_ARGS__))
#define TORCH_WARN(...) ::rushlight::warn(::rushlight::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...)                                          \
  do {                                                                \
    static bool rl_warned = false;                                    \
    ::rushlight::warn_once(rl_warned, ::rushlight::str(__VA_ARGS__)); \
  } while (false)
#define TORCH_API RL_API
#define C10_LOG_API_USAGE_ONCE(name) static_cast<void>(0)  // nobody is told of calls
#define C10_UNUSED [[maybe_unused]]
#define C10_LIKELY(x) RL_LIKELY(x)
#define C10_UNLIKELY(x) RL_UNLIKELY(x)
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 13
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.13.0"
#define LEGACY_CONTIGUOUS_MEMORY_FORMAT ::rushlight::get_contiguous_memory_format()

namespace rushlight {
template <class... Parts>
std::string check_text(const char* otherwise, const Parts&... parts) {
  if constexpr (sizeof...(Parts) == 0) {
    return otherwise;
  } else {
    return str(parts...);
  }
}
}  // namespace rushlight
