// Functions of complex numbers in device code: those of libcu++, which comes with the compiler.
#pragma once

#include <cuda/std/complex>

#include <rushlight/dtype.h>

namespace rushlight::math {

#define RL_COMPLEX_1(name)                                                                    \
  template <class T>                                                                          \
  RL_INLINE complex<T> name(complex<T> z) {                                                   \
    const ::cuda::std::complex<T> x = ::cuda::std::name(::cuda::std::complex<T>(z.re, z.im)); \
    return {x.real(), x.imag()};                                                              \
  }
RL_COMPLEX_1(acos)
RL_COMPLEX_1(acosh)
RL_COMPLEX_1(asin)
RL_COMPLEX_1(asinh)
RL_COMPLEX_1(atan)
RL_COMPLEX_1(atanh)
RL_COMPLEX_1(cos)
RL_COMPLEX_1(cosh)
RL_COMPLEX_1(exp)
RL_COMPLEX_1(log)
RL_COMPLEX_1(sin)
RL_COMPLEX_1(sinh)
RL_COMPLEX_1(sqrt)
RL_COMPLEX_1(tan)
RL_COMPLEX_1(tanh)
#undef RL_COMPLEX_1

template <class T>
RL_INLINE complex<T> pow(complex<T> a, complex<T> b) {
  if (b == complex<T>()) {
    return complex<T>(T(1));
  }
  if (a == complex<T>()) {  // its logarithm would be infinite
    return b.re > T(0) ? complex<T>() : complex<T>(T(1) / T(0), T(0));
  }
  const ::cuda::std::complex<T> x =
      ::cuda::std::pow(::cuda::std::complex<T>(a.re, a.im), ::cuda::std::complex<T>(b.re, b.im));
  return {x.real(), x.imag()};
}

}  // namespace rushlight::math
