// Scalar mathematics for formulas: one overload set `math::f` over float, double, complex and integers. Branch-free
// where it can be, so that the compiler vectorises loops over it.
// The declarations below give glibc's functions their vector forms (libmvec): a call in a plain loop becomes a call
// for 4, 8 or 16 lanes. They must be called outside of branches: choose between results, not between calls.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include <rushlight/dtype.h>

#ifdef __CUDACC__
#define RL_INLINE __host__ __device__ __forceinline__
#else
#define RL_INLINE inline __attribute__((always_inline))
#endif

#if !defined(__CUDACC__) && defined(__x86_64__)
#define RL_VECTOR_1(name)                                                                         \
  extern "C" __attribute__((simd("notinbranch"), const)) float name##f(float) noexcept;           \
  extern "C" __attribute__((simd("notinbranch"), const)) double name(double) noexcept;
#define RL_VECTOR_2(name)                                                                         \
  extern "C" __attribute__((simd("notinbranch"), const)) float name##f(float, float) noexcept;    \
  extern "C" __attribute__((simd("notinbranch"), const)) double name(double, double) noexcept;
RL_VECTOR_1(acos)
RL_VECTOR_1(acosh)
RL_VECTOR_1(asin)
RL_VECTOR_1(asinh)
RL_VECTOR_1(atan)
RL_VECTOR_1(atanh)
RL_VECTOR_1(cos)
RL_VECTOR_1(cosh)
RL_VECTOR_1(erf)
RL_VECTOR_1(erfc)
RL_VECTOR_1(exp)
RL_VECTOR_1(exp2)
RL_VECTOR_1(expm1)
RL_VECTOR_1(log)
RL_VECTOR_1(log10)
RL_VECTOR_1(log1p)
RL_VECTOR_1(log2)
RL_VECTOR_1(sin)
RL_VECTOR_1(sinh)
RL_VECTOR_1(tan)
RL_VECTOR_1(tanh)
RL_VECTOR_2(atan2)
RL_VECTOR_2(hypot)
RL_VECTOR_2(pow)
#undef RL_VECTOR_1
#undef RL_VECTOR_2
#endif

namespace rushlight::math {

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T nan = std::numeric_limits<T>::quiet_NaN();

// f(float) and f(double) under one name. Builtins where the compiler has an instruction for it.
#define RL_MATH_1(name, function)                                    \
  RL_INLINE float name(float x) { return function##f(x); }           \
  RL_INLINE double name(double x) { return function(x); }
#define RL_MATH_2(name, function)                                    \
  RL_INLINE float name(float x, float y) { return function##f(x, y); } \
  RL_INLINE double name(double x, double y) { return function(x, y); }
RL_MATH_1(acos, ::acos)
RL_MATH_1(acosh, ::acosh)
RL_MATH_1(asin, ::asin)
RL_MATH_1(asinh, ::asinh)
RL_MATH_1(atan, ::atan)
RL_MATH_1(atanh, ::atanh)
RL_MATH_1(cos, ::cos)
RL_MATH_1(cosh, ::cosh)
RL_MATH_1(erf, ::erf)
RL_MATH_1(erfc, ::erfc)
RL_MATH_1(exp, ::exp)
RL_MATH_1(exp2, ::exp2)
RL_MATH_1(expm1, ::expm1)
RL_MATH_1(log, ::log)
RL_MATH_1(log10, ::log10)
RL_MATH_1(log1p, ::log1p)
RL_MATH_1(log2, ::log2)
RL_MATH_1(sin, ::sin)
RL_MATH_1(sinh, ::sinh)
RL_MATH_1(tan, ::tan)
RL_MATH_1(tanh, ::tanh)
RL_MATH_1(lgamma, ::lgamma)
RL_MATH_1(sqrt, __builtin_sqrt)
RL_MATH_1(floor, __builtin_floor)
RL_MATH_1(ceil, __builtin_ceil)
RL_MATH_1(trunc, __builtin_trunc)
RL_MATH_1(rint, __builtin_rint)
RL_MATH_2(atan2, ::atan2)
RL_MATH_2(hypot, ::hypot)
RL_MATH_2(pow, ::pow)
RL_MATH_2(fmod, ::fmod)
RL_MATH_2(nextafter, ::nextafter)
RL_MATH_2(copysign, __builtin_copysign)
#undef RL_MATH_1
#undef RL_MATH_2

}  // namespace rushlight::math
