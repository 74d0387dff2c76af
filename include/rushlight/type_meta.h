// caffe2::TypeMeta: a dtype as Tensor::dtype() and TensorOptions::dtype() give it. It is a
// ScalarType wherever one is wanted, and knows its size and its C++ type.
#pragma once

#include <iosfwd>
#include <string_view>

#include <rushlight/dtype.h>

namespace rushlight {
// "float", "long", "c10::BFloat16".
RL_API std::string_view cpp_name(ScalarType dtype);
}  // namespace rushlight

namespace caffe2 {

class TypeMeta {
  using ScalarType = rushlight::ScalarType;

 public:
  constexpr TypeMeta() = default;
  // Not implicit: `x.defined() ? x.dtype() : kFloat` would have two types to choose from.
  constexpr explicit TypeMeta(ScalarType dtype) : dtype_(dtype) {}
  constexpr TypeMeta& operator=(ScalarType dtype) {
    dtype_ = dtype;
    return *this;
  }
  template <class T>
  static constexpr TypeMeta Make() {
    return TypeMeta(rushlight::dtype_of_v<T>);
  }
  template <class T>
  static constexpr size_t ItemSize() {
    return sizeof(T);
  }
  template <class T>
  static std::string_view TypeName() {
    return Make<T>().name();
  }
  static constexpr TypeMeta fromScalarType(ScalarType dtype) { return TypeMeta(dtype); }
  constexpr operator ScalarType() const { return dtype_; }
  constexpr ScalarType toScalarType() const { return dtype_; }
  constexpr bool isScalarType() const { return dtype_ != ScalarType::Undefined; }
  constexpr bool isScalarType(ScalarType dtype) const { return dtype_ == dtype; }
  template <class T>
  constexpr bool Match() const {
    return dtype_ == rushlight::dtype_of_v<T>;
  }
  constexpr size_t itemsize() const { return static_cast<size_t>(rushlight::itemsize(dtype_)); }
  std::string_view name() const { return rushlight::cpp_name(dtype_); }
  friend constexpr bool operator==(TypeMeta a, TypeMeta b) { return a.dtype_ == b.dtype_; }
  friend constexpr bool operator!=(TypeMeta a, TypeMeta b) { return a.dtype_ != b.dtype_; }
  friend constexpr bool operator==(TypeMeta a, ScalarType b) { return a.dtype_ == b; }
  friend constexpr bool operator!=(TypeMeta a, ScalarType b) { return a.dtype_ != b; }
  friend constexpr bool operator==(ScalarType a, TypeMeta b) { return a == b.dtype_; }
  friend constexpr bool operator!=(ScalarType a, TypeMeta b) { return a != b.dtype_; }
  // Messages name the dtype as Python does.
  friend void append(std::string& out, TypeMeta type) { rushlight::append(out, type.dtype_); }
  friend RL_API std::ostream& operator<<(std::ostream& out, TypeMeta type);

 private:
  ScalarType dtype_ = ScalarType::Undefined;
};

}  // namespace caffe2
