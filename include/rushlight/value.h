// Value: any argument or result of any op, for the boxed form call(op, values), for modes, and for
// what nodes keep.
#pragma once

#include <optional>
#include <string>
#include <utility>
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
  int64_t size(int64_t d) const { return sizes()[static_cast<size_t>(d < 0 ? d + dim() : d)]; }
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
RL_API std::vector<TensorMeta> metas_of(TensorList list);

// What is in it is out of line (src/core/value.cpp): hundreds of generated files box and unbox. A
// type that ops take in a new way gets a constructor and a row in that file.
class RL_API Value {
 public:
  using Variant =
      std::variant<None, Tensor, std::vector<Tensor>, Scalar, DimVector, std::vector<double>,
                   std::string, ScalarType, Device, Layout, MemoryFormat, Generator,
                   std::vector<std::optional<Tensor>>, TensorMeta, std::vector<TensorMeta>,
                   TensorOptions, std::vector<Scalar>>;
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  Value(const Tensor& t);
  Value(Tensor&& t);
  Value(TensorList list);
  Value(std::vector<Tensor> list);
  Value(std::vector<std::optional<Tensor>> list);
  Value(const Scalar& s);
  Value(IntArrayRef list);
  Value(OptionalIntArrayRef list);
  Value(DimVector list);
  Value(ArrayRef<Scalar> list);
  Value(std::vector<Scalar> list);
  Value(ArrayRef<double> list);
  Value(std::vector<double> list);
  Value(const char* text);
  Value(std::string_view text);
  Value(std::string text);
  Value(ScalarType dtype);
  Value(Device device);
  Value(Layout layout);
  Value(MemoryFormat format);
  Value(Generator generator);
  Value(TensorMeta meta);
  Value(std::vector<TensorMeta> metas);
  Value(const TensorOptions& options);
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Value(T number) : Value(Scalar(number)) {}
  template <class T>
  Value(const std::optional<T>& value) : Value(value.has_value() ? Value(*value) : Value()) {}

  bool is_none() const { return v_.index() == 0; }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(v_);
  }
  const Variant& variant() const { return v_; }

  // Calls f(tensor) for each tensor in it, also for undefined ones.
  template <class F>
  void for_each_tensor(const F& f) const {
    if (const auto* tensor = std::get_if<Tensor>(&v_)) {
      f(*tensor);
    } else if (const auto* list = std::get_if<std::vector<Tensor>>(&v_)) {
      for (const Tensor& t : *list) {
        f(t);
      }
    } else if (const auto* list = std::get_if<std::vector<std::optional<Tensor>>>(&v_)) {
      for (const std::optional<Tensor>& t : *list) {
        f(t ? *t : Tensor());
      }
    }
  }
  // Puts f(tensor) in the place of each tensor in it that is defined.
  template <class F>
  void change_tensors(const F& f) {
    const auto change = [&](Tensor& t) {
      if (t.defined()) {
        t = f(std::as_const(t));
      }
    };
    if (auto* tensor = std::get_if<Tensor>(&v_)) {
      change(*tensor);
    } else if (auto* list = std::get_if<std::vector<Tensor>>(&v_)) {
      for (Tensor& t : *list) {
        change(t);
      }
    } else if (auto* list = std::get_if<std::vector<std::optional<Tensor>>>(&v_)) {
      for (std::optional<Tensor>& t : *list) {
        if (t) {
          change(*t);
        }
      }
    }
  }

  // As the C++ argument type: get<Tensor>(), get<int64_t>(), get<std::optional<Scalar>>(),
  // get<std::vector<Tensor>>()… RuntimeError where the value is of another kind.
  template <class T>
  T get() const;

 private:
  template <class T>
  const T& held() const;
  Variant v_;
};

}  // namespace rushlight
