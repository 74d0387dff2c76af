// Scalar mathematics for formulas: one overload set `math::f` over float, double, complex and
// integers. Branch-free where it can be, so that the compiler vectorises loops over it. The
// declarations below give glibc's functions their vector forms (libmvec): a call in a plain loop
// becomes a call for 4, 8 or 16 lanes. They must be called outside of branches: choose between
// results, not between calls.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include <rushlight/dtype.h>

#include "kernels/inline.h"

// RL_DEVICE_MATH: where device code is compiled, the name of a header with the functions of complex
// numbers.
#if !defined(RL_DEVICE_MATH) && defined(__x86_64__)
#define RL_VECTOR_1(name)                                                               \
  extern "C" __attribute__((simd("notinbranch"), const)) float name##f(float) noexcept; \
  extern "C" __attribute__((simd("notinbranch"), const)) double name(double) noexcept;
#define RL_VECTOR_2(name)                                                                      \
  extern "C" __attribute__((simd("notinbranch"), const)) float name##f(float, float) noexcept; \
  extern "C" __attribute__((simd("notinbranch"), const)) double name(double, double) noexcept;
RL_VECTOR_1(acos)
RL_VECTOR_1(acosh)
RL_VECTOR_1(asin)
RL_VECTOR_1(asinh)
RL_VECTOR_1(atan)
RL_VECTOR_1(atanh)
RL_VECTOR_1(cos)
RL_VECTOR_1(cosh)
extern "C" __attribute__((simd("notinbranch"), const)) float rushlight_erff(float) noexcept;
extern "C" __attribute__((simd("notinbranch"), const)) double erf(double) noexcept;
RL_VECTOR_1(erfc)
extern "C" __attribute__((simd("notinbranch"), const)) double exp(double) noexcept;
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
#define RL_MATH_1(name, function)                          \
  RL_INLINE float name(float x) { return function##f(x); } \
  RL_INLINE double name(double x) { return function(x); }
#define RL_MATH_2(name, function)                                      \
  RL_INLINE float name(float x, float y) { return function##f(x, y); } \
  RL_INLINE double name(double x, double y) { return function(x, y); }
// a * b + c, in one rounding where the processor has the instruction.
RL_INLINE float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(RL_DEVICE_MATH)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
RL_INLINE double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(RL_DEVICE_MATH)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// e^x to 1 ULP, without the C library's slow way for results that overflow or vanish (a masked
// softmax is full of those): x = n ln 2 + r, a polynomial in r (Cephes), and 2^n as two factors, so
// that denormals round once. n is bounded as an integer and r from below, which is cheaper than
// bounding x: beyond the bounds the polynomial still gives infinity, zero or NaN.
RL_INLINE float exp(float x) {
  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits; here that is n + 254.
  constexpr float shift = 12582912.0f + 254.0f;
  constexpr int32_t origin = 0x4b400000 + 254;
  const int32_t shifted = std::bit_cast<int32_t>(multiply_add(x, 1.44269504088896341f, shift));
  const int32_t above = shifted < origin - 150 ? origin - 150 : shifted;
  const int32_t m = above > origin + 129 ? origin + 129 : above;
  const float whole = std::bit_cast<float>(m) - shift;
  const float rest = multiply_add(whole, 2.12194440e-4f, multiply_add(whole, -0.693359375f, x));
  const float r = -1.0f > rest ? -1.0f : rest;
  float p = multiply_add(1.9875691500e-4f, r, 1.3981999507e-3f);
  p = multiply_add(p, r, 8.3334519073e-3f);
  p = multiply_add(p, r, 4.1665795894e-2f);
  p = multiply_add(p, r, 1.6666665459e-1f);
  p = multiply_add(p, r, 5.0000001201e-1f);
  p = multiply_add(p, r * r, r) + 1.0f;
  // 2^(n/2) twice: n + 254 = (n/2 + 127) + (n/2 + 127), and shifts drop the bits above.
  const auto bits = static_cast<uint32_t>(m);
  const float first = std::bit_cast<float>(bits >> 1 << 23);
  const float second = std::bit_cast<float>((bits + 1) >> 1 << 23);
  return p * first * second;
}
RL_INLINE double exp(double x) { return ::exp(x); }

// Logarithms to 1 ULP (without fused products to 2), where the C library is off by up to 4:
// x = 2^e (1 + z) with 1 + z between the roots of 1/2 and 2, and ln(1 + z) = z + rest by a
// polynomial (Cephes).
struct LogParts {
  float e;
  float z;
  float rest;
};
RL_INLINE LogParts log_parts(float x) {
  const bool is_small = x < std::numeric_limits<float>::min();
  const auto bits = std::bit_cast<uint32_t>(is_small ? x * 8388608.0f : x);
  constexpr uint32_t root_of_half = 0x3f3504f3;
  const int32_t e = static_cast<int32_t>(bits - root_of_half) >> 23;
  const float z = std::bit_cast<float>(bits - (static_cast<uint32_t>(e) << 23)) - 1.0f;
  float p = multiply_add(7.0376836292e-2f, z, -1.1514610310e-1f);
  p = multiply_add(p, z, 1.1676998740e-1f);
  p = multiply_add(p, z, -1.2420140846e-1f);
  p = multiply_add(p, z, 1.4249322787e-1f);
  p = multiply_add(p, z, -1.6668057665e-1f);
  p = multiply_add(p, z, 2.0000714765e-1f);
  p = multiply_add(p, z, -2.4999993993e-1f);
  p = multiply_add(p, z, 3.3333331174e-1f);
  const float square = z * z;
  return {static_cast<float>(is_small ? e - 23 : e), z,
          multiply_add(-0.5f, square, z * square * p)};
}
// ln 2 and the factors of other bases are two numbers each, the first of few bits.
RL_INLINE float natural(LogParts l) {
  return multiply_add(l.e, 0.693359375f, l.z + multiply_add(l.e, -2.12194440e-4f, l.rest));
}
// `value` where x has a finite logarithm.
RL_INLINE float logarithm_or_edge(float x, float value) {
  const float edge = x < 0.0f ? nan<float> : x == 0.0f ? -infinity<float> : x;
  return (x > 0.0f) & (x < infinity<float>) ? value : edge;
}
RL_INLINE float log(float x) { return logarithm_or_edge(x, natural(log_parts(x))); }
RL_INLINE float log2(float x) {
  const LogParts l = log_parts(x);
  const float less = multiply_add(l.z, 0.44269504088896341f, l.rest * 0.44269504088896341f);
  return logarithm_or_edge(x, l.e + (l.z + (l.rest + less)));
}
RL_INLINE float log10(float x) {
  const LogParts l = log_parts(x);
  float sum = multiply_add(l.e, 2.48745663981195214e-4f, (l.z + l.rest) * 7.00731903251827651e-4f);
  sum = multiply_add(l.z, 0.43359375f, multiply_add(l.rest, 0.43359375f, sum));
  return logarithm_or_edge(x, multiply_add(l.e, 0.30078125f, sum));
}
RL_INLINE float log1p(float x) {
  const float sum = 1.0f + x;
  const float lost = x < 1.0f ? x - (sum - 1.0f) : 1.0f - (sum - x);
  LogParts l = log_parts(sum);
  l.rest += lost / sum;
  return logarithm_or_edge(sum, sum == 1.0f ? x : natural(l));
}
RL_INLINE double log(double x) { return ::log(x); }
RL_INLINE double log2(double x) { return ::log2(x); }
RL_INLINE double log10(double x) { return ::log10(x); }
RL_INLINE double log1p(double x) { return ::log1p(x); }

RL_MATH_1(acos, ::acos)
RL_MATH_1(acosh, ::acosh)
RL_MATH_1(asin, ::asin)
RL_MATH_1(asinh, ::asinh)
RL_MATH_1(atan, ::atan)
RL_MATH_1(atanh, ::atanh)
RL_MATH_1(cos, ::cos)
RL_MATH_1(cosh, ::cosh)
#if !defined(RL_DEVICE_MATH) && defined(__x86_64__)
RL_INLINE float erf(float x) { return rushlight_erff(x); }  // src/cpu/isa/pointwise/erf.cpp
#else
RL_INLINE float erf(float x) { return ::erff(x); }
#endif
RL_INLINE double erf(double x) { return ::erf(x); }
RL_MATH_1(erfc, ::erfc)
RL_MATH_1(exp2, ::exp2)
RL_MATH_1(expm1, ::expm1)
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
RL_MATH_2(fmod, ::fmod)
RL_MATH_2(nextafter, ::nextafter)
RL_MATH_2(copysign, __builtin_copysign)
#undef RL_MATH_1
#undef RL_MATH_2

// x^y from |x|^y: the C library's vectors leave negative numbers to a slow scalar way.
template <class T>
RL_INLINE T power_of(T x, T y, T size_to_y) {
  const bool whole = floor(y) == y;
  const T half = y * T(0.5);
  const bool odd = whole & (floor(half) != half);
  const T signed_power = odd ? copysign(size_to_y, x) : size_to_y;
  const bool undefined = (x < T(0)) & (x != -infinity<T>)&!whole;
  return undefined ? nan<T> : signed_power;
}
RL_INLINE float pow(float x, float y) { return power_of(x, y, ::powf(copysign(x, 1.0f), y)); }
RL_INLINE double pow(double x, double y) { return power_of(x, y, ::pow(copysign(x, 1.0), y)); }

// Rounding leaves integers alone.
template <class T>
  requires(std::is_integral_v<T>)
RL_INLINE T floor(T x) {
  return x;
}
template <class T>
  requires(std::is_integral_v<T>)
RL_INLINE T ceil(T x) {
  return x;
}
template <class T>
  requires(std::is_integral_v<T>)
RL_INLINE T trunc(T x) {
  return x;
}
template <class T>
  requires(std::is_integral_v<T>)
RL_INLINE T rint(T x) {
  return x;
}

// One of two, both of which are computed.
template <class T>
RL_INLINE T select(bool condition, T x, T y) {
  return condition ? x : y;
}
// Smallest and largest of two; a NaN wins. f-variants: a number wins over a NaN. (| has no branch.)
template <class T>
RL_INLINE T maximum(T x, T y) {
  return (x > y) | (x != x) ? x : y;
}
template <class T>
RL_INLINE T minimum(T x, T y) {
  return (x < y) | (x != x) ? x : y;
}
template <class T>
RL_INLINE T fmax(T x, T y) {
  return (x > y) | (y != y) ? x : y;
}
template <class T>
RL_INLINE T fmin(T x, T y) {
  return (x < y) | (y != y) ? x : y;
}

// Arithmetic that wraps for integers, where C++ leaves overflow undefined.
template <class T>
using Wrapping = std::make_unsigned_t<std::common_type_t<T, int>>;
template <class T>
RL_INLINE T add(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return (x | y) != 0;
  } else if constexpr (is_integer_v<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) + static_cast<Wrapping<T>>(y));
  } else {
    return x + y;
  }
}
template <class T>
RL_INLINE T sub(T x, T y) {
  if constexpr (is_integer_v<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) - static_cast<Wrapping<T>>(y));
  } else {
    return x - y;
  }
}
template <class T>
RL_INLINE T mul(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return (x & y) != 0;
  } else if constexpr (is_integer_v<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(y));
  } else {
    return x * y;
  }
}
// a * b + c of any dtype.
template <class T>
RL_INLINE T mul_add(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) {
    return multiply_add(a, b, c);
  } else {
    return add(mul(a, b), c);
  }
}
template <class T>
  requires(!is_complex_v<T>)
RL_INLINE T neg(T x) {
  if constexpr (is_integer_v<T>) {
    return sub(T(0), x);
  } else {
    return -x;
  }
}
template <class T>
  requires(!is_complex_v<T>)
RL_INLINE T abs(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return copysign(x, T(1));
  } else {
    return x < T(0) ? neg(x) : x;
  }
}

// Integer division rounds to zero and never traps: by zero it gives the dividend (kernels check
// before), and the least number by -1 wraps.
template <class T>
RL_INLINE T safe_divisor(T y) {
  return y == T(0) || (std::is_signed_v<T> && y == static_cast<T>(-1)) ? T(1) : y;
}
// x / y for y other than 0 and -1. Processors have no vectors of integer quotients, but a quotient
// of floating-point numbers that have bits to spare, rounded to zero, is that of the integers.
template <class T>
RL_INLINE T quotient(T x, T y) {
#if defined(RL_DEVICE_MATH)
  return static_cast<T>(x / y);
#else
  if constexpr (sizeof(T) < 4) {
    return static_cast<T>(static_cast<int32_t>(static_cast<float>(x) / static_cast<float>(y)));
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(static_cast<double>(x) / static_cast<double>(y));
  } else {
#if defined(__AVX512DQ__)
    // No bits to spare: a first quotient is some thousands off at most, a second one, of what it
    // leaves, at most one.
    constexpr double most = 0x1.fffffffffffffp62;
    const double divisor = static_cast<double>(y);
    const double guess = static_cast<double>(x) / divisor;
    T q = static_cast<T>(guess < most ? guess : most);
    T rest = sub(x, mul(q, y));
    const T more = static_cast<T>(static_cast<double>(rest) / divisor);
    q = add(q, more);
    rest = sub(rest, mul(more, y));
    const T away = (x ^ y) < 0 ? T(-1) : T(1);
    return rest != 0 && (rest ^ x) < 0 ? sub(q, away) : q;
#else
    return x / y;
#endif
  }
#endif
}
template <class T>
RL_INLINE T div_trunc(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return trunc(x / y);
  } else {
    const T q = quotient(x, safe_divisor(y));
    return std::is_signed_v<T> && y == static_cast<T>(-1) ? neg(q) : q;
  }
}
template <class T>
RL_INLINE T rem_trunc(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return fmod(x, y);
  } else {
    const T divisor = safe_divisor(y);
    return sub(x, mul(quotient(x, divisor), divisor));
  }
}
// The remainder of the sign of the divisor, as in Python; `r` is the one of the dividend's sign.
template <class T>
RL_INLINE T rem_floor(T, T y, T r) {
  return r != T(0) && (r < T(0)) != (y < T(0)) ? add(r, y) : r;
}
template <class T>
RL_INLINE T rem_floor(T x, T y) {
  return rem_floor(x, y, rem_trunc(x, y));
}
// By way of the exact remainder, so that the quotient is the floor of the true one.
template <class T>
RL_INLINE T div_floor(T x, T y, T r) {
  const T shift = r != T(0) && (r < T(0)) != (y < T(0)) ? T(1) : T(0);
  const T q = (x - r) / y - shift;
  const T whole = floor(q);
  const T rounded = q - whole > T(0.5) ? whole + T(1) : whole;
  const T result = q == T(0) ? copysign(T(0), x / y) : rounded;
  return y == T(0) ? x / y : result;
}
template <class T>
RL_INLINE T div_floor(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return div_floor(x, y, fmod(x, y));
  } else {
    const T q = div_trunc(x, y);
    const T r = rem_trunc(x, y);
    return r != T(0) && (r < T(0)) != (y < T(0)) ? sub(q, T(1)) : q;
  }
}

// x to an integer power by squaring; negative powers of integers are 0 but for 1 and -1.
template <class T>
  requires(std::is_integral_v<T>)
RL_INLINE T pow(T x, T y) {
  if (y < T(0)) {
    const T minus_one = static_cast<T>(-1);
    return x == T(1) ? T(1) : x != minus_one ? T(0) : y & T(1) ? minus_one : T(1);
  }
  T result = 1;
  for (; y != 0; y = static_cast<T>(y >> 1)) {
    result = (y & T(1)) != 0 ? mul(result, x) : result;
    x = mul(x, x);
  }
  return result;
}

// Shifts by counts outside of the width: everything is shifted out.
template <class T>
RL_INLINE T shift_left(T x, T n) {
  constexpr int bits = 8 * sizeof(T);
  using U = std::make_unsigned_t<T>;
  const bool valid = n >= T(0) && n < T(bits);
  const U shifted = static_cast<U>(static_cast<U>(x) << (valid ? static_cast<int>(n) : 0));
  return valid ? static_cast<T>(shifted) : T(0);
}
template <class T>
RL_INLINE T shift_right(T x, T n) {
  constexpr int bits = 8 * sizeof(T);
  const bool valid = n >= T(0) && n < T(bits);
  return static_cast<T>(x >> (valid ? static_cast<int>(n) : bits - 1)) &
         (valid || std::is_signed_v<T> ? T(-1) : T(0));
}

// The inverse of erf: Giles' polynomials in -log(1 - y^2), then two Newton steps.
template <class T>
RL_INLINE T erfinv(T y) {
  const auto poly = [](T w, const float (&c)[9]) {
    T p = T(c[0]);
    for (int i = 1; i < 9; ++i) {
      p = p * w + T(c[i]);
    }
    return p;
  };
  constexpr float centre[9] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                               -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                               -0.00417768164f,  0.246640727f,    1.50140941f};
  constexpr float tail[9] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                             -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                             0.00943887047f,   1.00167406f,     2.83297682f};
  const T w = -log((T(1) - y) * (T(1) + y));
  T x = y * (w < T(5) ? poly(w - T(2.5), centre) : poly(sqrt(w < T(5) ? T(5) : w) - T(3), tail));
  const T two_over_root_pi = T(1.1283791670955126);
  for (int i = 0; i < 2; ++i) {
    x = x - (erf(x) - y) / (two_over_root_pi * exp(-x * x));
  }
  const T edge = y == T(1) ? infinity<T> : -infinity<T>;
  return abs(y) < T(1) ? x : abs(y) == T(1) ? edge : nan<T>;
}

}  // namespace rushlight::math

#ifdef RL_DEVICE_MATH
#include RL_DEVICE_MATH
#else
namespace rushlight::math {

// Complex functions are those of the C library.
#define RL_COMPLEX_1(name, function)                  \
  RL_INLINE complex<float> name(complex<float> z) {   \
    __extension__ _Complex float x;                   \
    __real__ x = z.re;                                \
    __imag__ x = z.im;                                \
    x = function##f(x);                               \
    return {__real__ x, __imag__ x};                  \
  }                                                   \
  RL_INLINE complex<double> name(complex<double> z) { \
    __extension__ _Complex double x;                  \
    __real__ x = z.re;                                \
    __imag__ x = z.im;                                \
    x = function(x);                                  \
    return {__real__ x, __imag__ x};                  \
  }
RL_COMPLEX_1(acos, __builtin_cacos)
RL_COMPLEX_1(acosh, __builtin_cacosh)
RL_COMPLEX_1(asin, __builtin_casin)
RL_COMPLEX_1(asinh, __builtin_casinh)
RL_COMPLEX_1(atan, __builtin_catan)
RL_COMPLEX_1(atanh, __builtin_catanh)
RL_COMPLEX_1(cos, __builtin_ccos)
RL_COMPLEX_1(cosh, __builtin_ccosh)
RL_COMPLEX_1(exp, __builtin_cexp)
RL_COMPLEX_1(log, __builtin_clog)
RL_COMPLEX_1(sin, __builtin_csin)
RL_COMPLEX_1(sinh, __builtin_csinh)
RL_COMPLEX_1(sqrt, __builtin_csqrt)
RL_COMPLEX_1(tan, __builtin_ctan)
RL_COMPLEX_1(tanh, __builtin_ctanh)
#undef RL_COMPLEX_1

RL_INLINE complex<float> pow(complex<float> a, complex<float> b) {
  __extension__ _Complex float x;
  __extension__ _Complex float y;
  __real__ x = a.re;
  __imag__ x = a.im;
  __real__ y = b.re;
  __imag__ y = b.im;
  x = __builtin_cpowf(x, y);
  return b == complex<float>() ? complex<float>(1) : complex<float>(__real__ x, __imag__ x);
}
RL_INLINE complex<double> pow(complex<double> a, complex<double> b) {
  __extension__ _Complex double x;
  __extension__ _Complex double y;
  __real__ x = a.re;
  __imag__ x = a.im;
  __real__ y = b.re;
  __imag__ y = b.im;
  x = __builtin_cpow(x, y);
  return b == complex<double>() ? complex<double>(1) : complex<double>(__real__ x, __imag__ x);
}

}  // namespace rushlight::math
#endif

namespace rushlight::math {

// A complex factor would make NaN of an infinite part, by its own part that is 0.
template <class T>
RL_INLINE complex<T> scale_by(complex<T> z, double factor) {
  return {z.re * T(factor), z.im * T(factor)};
}
template <class T>
RL_INLINE complex<T> exp2(complex<T> z) {
  return exp(scale_by(z, 0.6931471805599453));
}
template <class T>
RL_INLINE complex<T> expm1(complex<T> z) {
  // exp(a + bi) - 1 = expm1(a) cos b + (cos b - 1) + i exp(a) sin b, where cos b - 1 = -2 sin^2(b /
  // 2).
  const T half = sin(z.im / T(2));
  return {expm1(z.re) * cos(z.im) - T(2) * half * half, exp(z.re) * sin(z.im)};
}
template <class T>
RL_INLINE complex<T> log2(complex<T> z) {
  return scale_by(log(z), 1.4426950408889634);
}
template <class T>
RL_INLINE complex<T> log10(complex<T> z) {
  return scale_by(log(z), 0.4342944819032518);
}
template <class T>
RL_INLINE complex<T> log1p(complex<T> z) {
  // |1 + z|^2 - 1 = 2 a + a^2 + b^2, which does not cancel for small z.
  const T square = z.re * (T(2) + z.re) + z.im * z.im;
  const complex<T> plain = log(complex<T>(T(1) + z.re, z.im));  // keeps the sign of a zero
  const bool is_small = abs(z.re) + abs(z.im) < T(0.5);
  return {is_small ? T(0.5) * log1p(square) : plain.re, plain.im};
}
template <class T>
RL_INLINE T abs(complex<T> z) {
  return hypot(z.re, z.im);
}
template <class T>
RL_INLINE complex<T> neg(complex<T> z) {
  return -z;
}

}  // namespace rushlight::math
