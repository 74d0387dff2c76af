// Scalar: one Python number (bool, int, float or complex), exact until a kernel asks for its
// compute type.
#pragma once

#include <rushlight/dtype.h>

namespace rushlight {

class Scalar {
 public:
  // UInt: an integer that int64 does not hold and uint64 does.
  enum class Kind : uint8_t { Bool, Int, UInt, Float, Complex };
  Scalar() : kind_(Kind::Int) { v_.i = 0; }
  // A template, so that no pointer is a number.
  template <class T, std::enable_if_t<std::is_same_v<T, bool>, short> = 0>
  Scalar(T v) : kind_(Kind::Bool) {
    v_.i = v;
  }
  template <class T, std::enable_if_t<is_integer_v<T>, int> = 0>
  Scalar(T v) : kind_(Kind::Int) {
    v_.i = static_cast<int64_t>(v);
    if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>) {
      kind_ = v_.i < 0 ? Kind::UInt : Kind::Int;
    }
  }
  Scalar(double v) : kind_(Kind::Float) { v_.d[0] = v; }
  Scalar(float v) : Scalar(static_cast<double>(v)) {}
  template <class T, std::enable_if_t<is_small_float_v<T>, char> = 0>
  Scalar(T v) : Scalar(static_cast<double>(static_cast<float>(v))) {}
  template <class T>
  Scalar(complex<T> v) : kind_(Kind::Complex) {
    v_.d[0] = static_cast<double>(v.re);
    v_.d[1] = static_cast<double>(v.im);
  }
  Kind kind() const { return kind_; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_integral(bool include_bool = false) const {
    return kind_ == Kind::Int || kind_ == Kind::UInt || (include_bool && kind_ == Kind::Bool);
  }
  bool is_floating_point() const { return kind_ == Kind::Float; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  // libtorch's names of these.
  bool isBoolean() const { return is_bool(); }
  bool isIntegral(bool include_bool = false) const { return is_integral(include_bool); }
  bool isFloatingPoint() const { return is_floating_point(); }
  bool isComplex() const { return is_complex(); }
  ScalarType type() const { return dtype(); }
  // What a tensor made of this number has: bool, int64, uint64, float64 or complex128.
  ScalarType dtype() const {
    constexpr ScalarType types[] = {kBool, kInt64, kUInt64, kFloat64, kComplexDouble};
    return types[static_cast<int>(kind_)];
  }
  // Conversion without a range check.
  template <class T>
  T as() const {
    switch (kind_) {
      case Kind::Bool:
      case Kind::Int:
        return convert<T>(v_.i);
      case Kind::UInt:
        return convert<T>(static_cast<uint64_t>(v_.i));
      case Kind::Float:
        return convert<T>(v_.d[0]);
      default:
        return convert<T>(complex<double>(v_.d[0], v_.d[1]));
    }
  }
  // Raises RuntimeError where the value does not fit ("value cannot be converted to type ...
  // without overflow").
  RL_API void check_fits(ScalarType t) const;
  template <class T>
  T to() const {
    check_fits(dtype_of_v<T>);
    return as<T>();
  }
  int toInt() const { return to<int>(); }
  int64_t toLong() const { return to<int64_t>(); }
  float toFloat() const { return to<float>(); }
  double toDouble() const { return to<double>(); }
  bool toBool() const { return as<bool>(); }
  int8_t toChar() const { return to<int8_t>(); }
  uint8_t toByte() const { return to<uint8_t>(); }
  int16_t toShort() const { return to<int16_t>(); }
  Half toHalf() const { return to<Half>(); }
  BFloat16 toBFloat16() const { return to<BFloat16>(); }
  complex<float> toComplexFloat() const { return to<complex<float>>(); }
  complex<double> toComplexDouble() const { return to<complex<double>>(); }
  Scalar operator-() const {
    if (kind_ == Kind::Complex) {
      return complex<double>(-v_.d[0], -v_.d[1]);
    }
    return kind_ == Kind::Float ? Scalar(-v_.d[0]) : Scalar(-v_.i);
  }
  Scalar conj() const {
    return kind_ == Kind::Complex ? Scalar(complex<double>(v_.d[0], -v_.d[1])) : *this;
  }
  bool equal(double x) const { return as<complex<double>>() == complex<double>(x); }

 private:
  Kind kind_;
  union {
    int64_t i;
    double d[2];
  } v_;
};
// Writes the number to memory as an element of dtype t, without a range check.
RL_API void store_scalar(void* to, ScalarType t, const Scalar& s);
RL_API void append(std::string& out, const Scalar& s);  // as Python prints it

}  // namespace rushlight
