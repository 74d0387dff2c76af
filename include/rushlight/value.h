// Value: any argument or result of any op, for the boxed form call(op, values), for modes, and for
// what nodes keep.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <rushlight/generator.h>
#include <rushlight/tensor.h>

namespace rushlight {

struct None {};

// Geometry, dtype and device of a tensor that need not be kept itself.
class TensorMeta {
 public:
  TensorMeta() = default;
  explicit TensorMeta(const Tensor& t)
      : dims_(t.sizes()), offset_(t.storage_offset()), dtype_(t.dtype()), device_(t.device()) {
    for (const int64_t s : t.strides()) {
      dims_.push_back(s);
    }
  }
  IntArrayRef sizes() const { return {dims_.data(), dims_.size() / 2}; }
  IntArrayRef strides() const { return {dims_.data() + dims_.size() / 2, dims_.size() / 2}; }
  int64_t storage_offset() const { return offset_; }
  int64_t dim() const { return static_cast<int64_t>(dims_.size() / 2); }
  int64_t size(int64_t d) const { return dims_[static_cast<size_t>(d < 0 ? d + dim() : d)]; }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t s : sizes()) {
      n *= s;
    }
    return n;
  }
  ScalarType dtype() const { return dtype_; }
  ScalarType scalar_type() const { return dtype_; }
  bool is_complex() const { return rushlight::is_complex(dtype_); }
  Device device() const { return device_; }
  TensorOptions options() const { return TensorOptions(dtype_).device(device_); }

 private:
  DimVector dims_;  // sizes, then strides
  int64_t offset_ = 0;
  ScalarType dtype_ = ScalarType::Undefined;
  Device device_;
};
inline std::vector<TensorMeta> metas_of(TensorList list) {
  std::vector<TensorMeta> out;
  out.reserve(list.size());
  for (const Tensor& t : list) {
    out.emplace_back(t);
  }
  return out;
}

class Value {
 public:
  using Variant = std::variant<None, Tensor, std::vector<Tensor>, Scalar, DimVector,
                               std::vector<double>, std::string, ScalarType, Device, Layout,
                               MemoryFormat, Generator, std::vector<std::optional<Tensor>>,
                               TensorMeta, std::vector<TensorMeta>, TensorOptions>;
  Value() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, Value>)
  Value(T&& v) : v_(box(std::forward<T>(v))) {}
  bool is_none() const { return v_.index() == 0; }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(v_);
  }
  const Variant& variant() const { return v_; }

  // As the C++ argument type: get<Tensor>(), get<int64_t>(), get<std::optional<Scalar>>(),
  // get<std::vector<Tensor>>()… RuntimeError where the value is of another kind.
  template <class T>
  T get() const {
    if constexpr (is_optional<T>::value) {
      using Inner = typename T::value_type;
      return is_none() ? T() : T(get<Inner>());
    } else if constexpr (std::is_same_v<T, Tensor>) {
      return is_none() ? Tensor() : held<Tensor>();
    } else if constexpr (std::is_same_v<T, bool>) {
      return held<Scalar>().toBool();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return held<Scalar>().toLong();
    } else if constexpr (std::is_same_v<T, double>) {
      return held<Scalar>().toDouble();
    } else {
      return held<T>();
    }
  }

 private:
  template <class T>
  struct is_optional : std::false_type {};
  template <class T>
  struct is_optional<std::optional<T>> : std::true_type {};
  template <class T>
  const T& held() const {
    const T* p = std::get_if<T>(&v_);
    RL_CHECK(p != nullptr, "a boxed value of kind ", static_cast<int>(v_.index()),
             " was read as another kind");
    return *p;
  }
  template <class T>
  static Variant box(T&& v) {
    using D = std::decay_t<T>;
    if constexpr (is_optional<D>::value) {
      return v.has_value() ? box(*std::forward<T>(v)) : Variant(None{});
    } else if constexpr (std::is_arithmetic_v<D>) {
      return Variant(Scalar(v));
    } else if constexpr (std::is_same_v<D, OptionalIntArrayRef>) {
      return v.has_value() ? Variant(DimVector(*v)) : Variant(None{});
    } else if constexpr (std::is_same_v<D, IntArrayRef>) {
      return Variant(DimVector(v));
    } else if constexpr (std::is_same_v<D, TensorList>) {
      return Variant(v.vec());
    } else if constexpr (std::is_same_v<D, ArrayRef<double>>) {
      return Variant(v.vec());
    } else if constexpr (std::is_same_v<D, std::string_view> || std::is_same_v<D, const char*>) {
      return Variant(std::string(v));
    } else {
      return Variant(std::forward<T>(v));
    }
  }
  Variant v_ = None{};
};

}  // namespace rushlight
