// Random fills of contiguous memory on the CPU, giving PyTorch's numbers for the same generator
// state: each function draws as many numbers, in the same order, and converts them in the same way.
// The caller holds the generator's mutex and has checked the arguments; `n` may be 0. An element of
// type T gets what the conversion from its compute type gives. Everything but the mathematics in
// double precision is a plain loop over a small buffer, to be compiled for each instruction set; a
// new distribution takes its raw numbers from `draw` in the same way.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <rushlight/dtype.h>

#include "core/generator.h"

#ifndef RL_ISA
#define RL_ISA portable
#endif

namespace rushlight::random::RL_ISA {

constexpr int64_t buffer_size = 1024;

// a * b + c with one rounding where the instruction exists; without it a float is off by a rounding
// now and then.
inline float multiply_add(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<float>(static_cast<double>(a) * b + c);
#endif
}
inline double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }

// n uniform numbers in [0, 1), of 24 bits in float and 53 in double.
inline void unit(Mt19937& e, float* out, int64_t n) {
  uint32_t raw[buffer_size];
  for (int64_t at = 0; at < n; at += buffer_size) {
    const int64_t k = std::min(buffer_size, n - at);
    draw(e, raw, k);
    for (int64_t i = 0; i < k; i++) {
      out[at + i] = static_cast<float>(static_cast<int32_t>(raw[i] & 0xffffffu)) * 0x1p-24f;
    }
  }
}
inline void unit(Mt19937& e, double* out, int64_t n) {
  uint32_t raw[2 * buffer_size];
  for (int64_t at = 0; at < n; at += buffer_size) {
    const int64_t k = std::min(buffer_size, n - at);
    draw(e, raw, 2 * k);
    for (int64_t i = 0; i < k; i++) {
      const int64_t bits = static_cast<int64_t>(raw[2 * i] & 0x1fffffu) << 32 | raw[2 * i + 1];
      out[at + i] = static_cast<double>(bits) * 0x1p-53;
    }
  }
}

// uniform_(from, to): a number that rounds to `to` becomes `from`.
template <class T>
void fill_uniform(T* out, int64_t n, double from, double to, GeneratorImpl& g) {
  using C = compute_t<T>;
  const C low = static_cast<C>(from);
  const C range = static_cast<C>(to) - low;
  const C first = static_cast<C>(static_cast<T>(low));
  const C end = static_cast<C>(static_cast<T>(static_cast<C>(to)));
  C x[buffer_size];
  for (int64_t at = 0; at < n; at += buffer_size) {
    const int64_t k = std::min(buffer_size, n - at);
    unit(g.engine, x, k);
    for (int64_t i = 0; i < k; i++) {
      const C value = static_cast<C>(static_cast<T>(multiply_add(x[i], range, low)));
      out[at + i] = static_cast<T>(value == end ? first : value);
    }
  }
}

// ---- normal ----

// Logarithm of x in (0, 1], and sine and cosine of x in [0, 2 pi], by the polynomials of the Cephes
// library (Moshier), with multiplications and additions fused as PyTorch's vector code has them:
// bits are equal to it.
inline float cephes_log(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  const float half = std::bit_cast<float>((bits & 0x7fffffu) | 0x3f000000u);
  const bool low = half < 0.707106781186547524f;
  e = low ? e - 1.0f : e;
  const float y = low ? half + half - 1.0f : half - 1.0f;
  const float z = y * y;
  float p = 7.0376836292e-2f;
  p = multiply_add(p, y, -1.1514610310e-1f);
  p = multiply_add(p, y, 1.1676998740e-1f);
  p = multiply_add(p, y, -1.2420140846e-1f);
  p = multiply_add(p, y, 1.4249322787e-1f);
  p = multiply_add(p, y, -1.6668057665e-1f);
  p = multiply_add(p, y, 2.0000714765e-1f);
  p = multiply_add(p, y, -2.4999993993e-1f);
  p = multiply_add(p, y, 3.3333331174e-1f);
  p = multiply_add(p * y, z, e * -2.12194440e-4f);
  p = multiply_add(z, -0.5f, p);
  return multiply_add(e, 0.693359375f, y + p);
}

inline void cephes_sincos(float x, float& sine, float& cosine) {
  const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const float k = static_cast<float>(octant);
  x = multiply_add(k, -0.78515625f, x);
  x = multiply_add(k, -2.4187564849853515625e-4f, x);
  x = multiply_add(k, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = multiply_add(z, 2.443315711809948e-5f, -1.388731625493765e-3f);
  c = multiply_add(c, z, 4.166664568298827e-2f) * z;
  c = multiply_add(c, z, z * -0.5f) + 1.0f;
  float s = multiply_add(z, -1.9515295891e-4f, 8.3321608736e-3f);
  s = multiply_add(s, z, -1.6666654611e-1f) * z;
  s = multiply_add(s, x, x);
  const bool swapped = (octant & 2) != 0;
  const float sin_size = swapped ? c : s;
  const float cos_size = swapped ? s : c;
  sine = (octant & 4) != 0 ? -sin_size : sin_size;
  cosine = ((octant + 2) & 4) != 0 ? -cos_size : cos_size;
}

// Sixteen uniform numbers become normal ones.
inline void to_normal_16(float* x, float mean, float std) {
  for (int j = 0; j < 8; j++) {
    const float radius = std::sqrt(-2.0f * cephes_log(1.0f - x[j]));
    float s = 0;
    float c = 0;
    cephes_sincos(6.283185307179586f * x[j + 8], s, c);
    x[j] = multiply_add(radius * c, std, mean);
    x[j + 8] = multiply_add(radius * s, std, mean);
  }
}
inline void to_normal_16(double* x, double mean, double std) {
  normal_from_uniform_16(x, mean, std);
}

// normal_(mean, std) of elements one by one: fewer than 16, or not contiguous.
template <class T>
void fill_normal_serially(T* out, int64_t n, double mean, double std, GeneratorImpl& g) {
  for (int64_t i = 0; i < n; i++) {
    out[i] = convert<T>(multiply_add(next_normal(g), std, mean));
  }
}

template <class T>
void fill_normal(T* out, int64_t n, double mean, double std, GeneratorImpl& g) {
  if (n < 16) {
    fill_normal_serially(out, n, mean, std, g);
    return;
  }
  using C = compute_t<T>;
  const C m = static_cast<C>(mean);
  const C s = static_cast<C>(std);
  C x[buffer_size];
  const auto make = [&](T* to, int64_t count) {
    for (int64_t i = 0; i < count; i += 16) {
      to_normal_16(x + i, m, s);
    }
    for (int64_t i = 0; i < count; i++) {
      to[i] = static_cast<T>(x[i]);
    }
  };
  const int64_t whole = n & ~int64_t{15};
  for (int64_t at = 0; at < whole; at += buffer_size) {
    const int64_t k = std::min(buffer_size, whole - at);
    unit(g.engine, x, k);
    make(out + at, k);
  }
  if (whole == n) {
    return;
  }
  // The last sixteen are drawn anew. In float and double the numbers for the rest beyond the whole
  // blocks have been drawn by then and are thrown away; the 16-bit types work block by block.
  if constexpr (std::is_same_v<T, C>) {
    unit(g.engine, x, n - whole);
  }
  unit(g.engine, x, 16);
  make(out + n - 16, 16);
}

// ---- integers ----

// from + a number below range, which is not 0: randint and random_(from, to), in all dtypes.
template <class T>
void fill_integers(T* out, int64_t n, uint64_t range, int64_t from, GeneratorImpl& g) {
  if (range >= uint64_t{1} << 28) {
    for (int64_t i = 0; i < n; i++) {
      out[i] =
          convert<T>(static_cast<int64_t>(next_64(g.engine) % range + static_cast<uint64_t>(from)));
    }
    return;
  }
  uint32_t raw[buffer_size];
  const uint32_t r = static_cast<uint32_t>(range);
  for (int64_t at = 0; at < n; at += buffer_size) {
    const int64_t k = std::min(buffer_size, n - at);
    draw(g.engine, raw, k);
    for (int64_t i = 0; i < k; i++) {
      out[at + i] = convert<T>(static_cast<int64_t>(raw[i] % r) + from);
    }
  }
}

// random_(from, None) with `from` the least int64: all 64 bits.
template <class T>
void fill_all_bits(T* out, int64_t n, GeneratorImpl& g) {
  for (int64_t i = 0; i < n; i++) {
    out[i] = convert<T>(static_cast<int64_t>(next_64(g.engine)));
  }
}

// random_(): from 0 to the largest integer of the type, or to the largest that a float counts up to
// without gaps.
template <class T>
void fill_random(T* out, int64_t n, GeneratorImpl& g) {
  if constexpr (std::is_same_v<T, double>) {
    for (int64_t i = 0; i < n; i++) {
      out[i] = static_cast<double>(next_64(g.engine) % ((uint64_t{1} << 53) + 1));
    }
  } else if constexpr (std::is_same_v<T, int64_t>) {
    for (int64_t i = 0; i < n; i++) {
      out[i] = static_cast<int64_t>(next_64(g.engine) & (~uint64_t{0} >> 1));
    }
  } else {
    constexpr uint32_t range = [] {
      if constexpr (std::is_same_v<T, bool>) {
        return 2u;
      } else if constexpr (std::is_integral_v<T>) {
        return static_cast<uint32_t>(std::numeric_limits<T>::max()) + 1;
      } else {
        return (1u << (std::is_same_v<T, float> ? 24 : std::is_same_v<T, Half> ? 11 : 8)) + 1;
      }
    }();
    uint32_t raw[buffer_size];
    for (int64_t at = 0; at < n; at += buffer_size) {
      const int64_t k = std::min(buffer_size, n - at);
      draw(g.engine, raw, k);
      for (int64_t i = 0; i < k; i++) {
        out[at + i] = convert<T>(static_cast<int64_t>(raw[i] % range));
      }
    }
  }
}

// A permutation of 0 .. n - 1, by Fisher and Yates: forward with 32-bit numbers as long as these
// favour no place by more than a twentieth, else from the inside out with 64-bit ones.
template <class T>
void fill_permutation(T* out, int64_t n, GeneratorImpl& g) {
  if (n >= static_cast<int64_t>(UINT32_MAX / 20)) {
    for (int64_t i = 0; i < n; i++) {
      const int64_t z = static_cast<int64_t>(next_64(g.engine) % static_cast<uint64_t>(i + 1));
      out[i] = out[z];
      out[z] = convert<T>(i);
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    out[i] = convert<T>(i);
  }
  for (int64_t i = 0; i < n - 1; i++) {
    std::swap(out[i], out[i + next_32(g.engine) % static_cast<uint32_t>(n - i)]);
  }
}

// ---- others ----

// bernoulli_(p) and the mask of dropout (p: the probability of 1).
template <class T>
void fill_bernoulli(T* out, int64_t n, double p, GeneratorImpl& g) {
  double x[buffer_size];
  for (int64_t at = 0; at < n; at += buffer_size) {
    const int64_t k = std::min(buffer_size, n - at);
    unit(g.engine, x, k);
    for (int64_t i = 0; i < k; i++) {
      out[at + i] = convert<T>(x[i] < p);
    }
  }
}

// The same with a probability for each element.
template <class T, class P>
void fill_bernoulli(T* out, const P* p, int64_t n, GeneratorImpl& g) {
  using C = compute_t<P>;
  C x[buffer_size];
  for (int64_t at = 0; at < n; at += buffer_size) {
    const int64_t k = std::min(buffer_size, n - at);
    unit(g.engine, x, k);
    for (int64_t i = 0; i < k; i++) {
      out[at + i] = convert<T>(x[i] < static_cast<C>(p[at + i]));
    }
  }
}

template <class T>
void fill_exponential(T* out, int64_t n, double lambda, GeneratorImpl& g) {
  double x[buffer_size];
  for (int64_t at = 0; at < n; at += buffer_size) {
    const int64_t k = std::min(buffer_size, n - at);
    unit(g.engine, x, k);
    exponential_from_uniform(x, k, lambda);
    for (int64_t i = 0; i < k; i++) {
      out[at + i] = convert<T>(x[i]);
    }
  }
}

}  // namespace rushlight::random::RL_ISA
