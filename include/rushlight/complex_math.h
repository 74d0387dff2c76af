// Functions of the standard library for complex numbers of tensors: std::conj(z), std::abs(z) …
#pragma once

#include <complex>
#include <ostream>

#include <rushlight/dtype.h>

namespace rushlight {
template <class T>
std::complex<T> to_std(complex<T> z) {
  return {z.re, z.im};
}
template <class T>
complex<T> from_std(const std::complex<T>& z) {
  return {z.real(), z.imag()};
}
template <class T>
complex<T> polar(T radius, T angle = T()) {
  return from_std(std::polar(radius, angle));
}
template <class T>
std::ostream& operator<<(std::ostream& out, complex<T> z) {
  return out << '(' << z.re << ',' << z.im << ')';
}
}  // namespace rushlight

namespace std {
#define RL_PART(name)                    \
  template <class T>                     \
  T name(::rushlight::complex<T> z) {    \
    return name(::rushlight::to_std(z)); \
  }
RL_PART(real)
RL_PART(imag)
RL_PART(abs)
RL_PART(arg)
RL_PART(norm)
#undef RL_PART
#define RL_FUNCTION(name)                                       \
  template <class T>                                            \
  ::rushlight::complex<T> name(::rushlight::complex<T> z) {     \
    return ::rushlight::from_std(name(::rushlight::to_std(z))); \
  }
RL_FUNCTION(conj)
RL_FUNCTION(proj)
RL_FUNCTION(exp)
RL_FUNCTION(log)
RL_FUNCTION(log10)
RL_FUNCTION(sqrt)
RL_FUNCTION(sin)
RL_FUNCTION(cos)
RL_FUNCTION(tan)
RL_FUNCTION(asin)
RL_FUNCTION(acos)
RL_FUNCTION(atan)
RL_FUNCTION(sinh)
RL_FUNCTION(cosh)
RL_FUNCTION(tanh)
RL_FUNCTION(asinh)
RL_FUNCTION(acosh)
RL_FUNCTION(atanh)
#undef RL_FUNCTION
template <class T>
::rushlight::complex<T> pow(::rushlight::complex<T> base, ::rushlight::complex<T> exponent) {
  return ::rushlight::from_std(pow(::rushlight::to_std(base), ::rushlight::to_std(exponent)));
}
template <class T>
::rushlight::complex<T> pow(::rushlight::complex<T> base, T exponent) {
  return ::rushlight::from_std(pow(::rushlight::to_std(base), exponent));
}
}  // namespace std
