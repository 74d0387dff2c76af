// caffe2::TypeMeta: a dtype as libtorch's Tensor::dtype() gives it. The two convert to each other.
#pragma once

#include <ostream>
#include <string>

#include <rushlight/compat.h>
#include <rushlight/function.h>

namespace rushlight::detail {
inline std::string cpp_name(ScalarType dtype) {
  switch (dtype) {
#define RL_NAME(type, enumerator, ...) \
  case ScalarType::enumerator:         \
    return autograd::type_name_of(typeid(type).name());
    RL_FOR_EACH_DTYPE(RL_NAME)
#undef RL_NAME
    default:
      return "nullptr (uninitialized)";
  }
}
}  // namespace rushlight::detail

namespace caffe2 {

class TypeMeta {
 public:
  TypeMeta() = default;
  TypeMeta(rushlight::ScalarType dtype) : dtype_(dtype) {}
  template <class T>
  static TypeMeta Make() {
    return rushlight::dtype_of_v<T>;
  }
  static TypeMeta fromScalarType(rushlight::ScalarType dtype) { return dtype; }
  operator rushlight::ScalarType() const { return dtype_; }
  operator rushlight::TensorOptions() const { return dtype_; }
  rushlight::ScalarType toScalarType() const { return dtype_; }
  bool isScalarType() const { return dtype_ != rushlight::ScalarType::Undefined; }
  bool isScalarType(rushlight::ScalarType dtype) const { return dtype_ == dtype; }
  template <class T>
  bool Match() const {
    return *this == Make<T>();
  }
  size_t itemsize() const { return static_cast<size_t>(rushlight::itemsize(dtype_)); }
  // The C++ type: "float", "long int", "c10::BFloat16".
  std::string name() const {
    const std::string text = rushlight::detail::cpp_name(dtype_), own = "rushlight::";
    return text.compare(0, own.size(), own) == 0 ? "c10::" + text.substr(own.size()) : text;
  }
  friend bool operator==(TypeMeta a, TypeMeta b) { return a.dtype_ == b.dtype_; }
  friend bool operator!=(TypeMeta a, TypeMeta b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& out, TypeMeta type) { return out << type.name(); }

 private:
  rushlight::ScalarType dtype_ = rushlight::ScalarType::Undefined;
};

}  // namespace caffe2
