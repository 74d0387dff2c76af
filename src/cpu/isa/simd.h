// One vector of floats or doubles of the instruction set being compiled, for kernels that the
// compiler would not vectorise well by itself: Simd<float>::V and the few operations on it. 16-bit
// floats are loaded and stored as floats. `max` and `min` give b where either is NaN; `unordered`
// tells where. `fma` is fused on aarch64 and from x86-64-v3 on, and a product and a sum in v2.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include <rushlight/dtype.h>

#include "cpu/isa/sse.h"

namespace rushlight::cpu::RL_ISA {

template <class T>
struct Simd;

#if defined(__AVX512F__)

template <>
struct Simd<float> {
  using V = __m512;
  static constexpr int64_t width = 16;
  static constexpr __mmask16 all =
      0xffff;  // the unmasked forms make g++ 12 warn of its own headers
  static V zero() { return _mm512_setzero_ps(); }
  static V set1(float x) { return _mm512_set1_ps(x); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V max(V a, V b) { return _mm512_maskz_max_ps(all, a, b); }
  static V min(V a, V b) { return _mm512_maskz_min_ps(all, a, b); }
  using Flags = __mmask16;
  static Flags unordered(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
  static Flags either(Flags a, Flags b) { return static_cast<Flags>(a | b); }
  static bool any(Flags f) { return f != 0; }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V load(const BFloat16* p) {
    const __m512i wide =
        _mm512_maskz_cvtepu16_epi32(all, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all, wide, 16));
  }
  static V load(const Half* p) {
    return _mm512_maskz_cvtph_ps(all, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store(Half* p, V v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_maskz_cvtps_ph(all, v, _MM_FROUND_TO_NEAREST_INT));
  }
  static void store(BFloat16* p, V v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd =
        _mm512_and_si512(_mm512_maskz_srli_epi32(all, bits, 16), _mm512_set1_epi32(1));
    const __m512i half = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), odd);
    __m512i rounded = _mm512_maskz_srli_epi32(all, _mm512_add_epi32(bits, half), 16);
    rounded = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q),
                                    _mm512_set1_epi32(0x7fc0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(all, rounded));
  }
};

template <>
struct Simd<double> {
  using V = __m512d;
  static constexpr int64_t width = 8;
  static V zero() { return _mm512_setzero_pd(); }
  static V set1(double x) { return _mm512_set1_pd(x); }
  static V load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, V v) { _mm512_storeu_pd(p, v); }
  static V add(V a, V b) { return _mm512_add_pd(a, b); }
  static V sub(V a, V b) { return _mm512_sub_pd(a, b); }
  static V mul(V a, V b) { return _mm512_mul_pd(a, b); }
  static V max(V a, V b) { return _mm512_maskz_max_pd(0xff, a, b); }
  static V min(V a, V b) { return _mm512_maskz_min_pd(0xff, a, b); }
  using Flags = __mmask8;
  static Flags unordered(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q); }
  static Flags either(Flags a, Flags b) { return static_cast<Flags>(a | b); }
  static bool any(Flags f) { return f != 0; }
  static V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
};

#elif defined(__AVX2__)

template <>
struct Simd<float> {
  using V = __m256;
  static constexpr int64_t width = 8;
  static V zero() { return _mm256_setzero_ps(); }
  static V set1(float x) { return _mm256_set1_ps(x); }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V max(V a, V b) { return _mm256_max_ps(a, b); }
  static V min(V a, V b) { return _mm256_min_ps(a, b); }
  using Flags = V;
  static Flags unordered(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
  static Flags either(Flags a, Flags b) { return _mm256_or_ps(a, b); }
  static bool any(Flags f) { return _mm256_movemask_ps(f) != 0; }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V load(const BFloat16* p) {
    const __m256i wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static V load(const Half* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store(Half* p, V v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static void store(BFloat16* p, V v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd);
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i safe = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(safe, safe), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
};

template <>
struct Simd<double> {
  using V = __m256d;
  static constexpr int64_t width = 4;
  static V zero() { return _mm256_setzero_pd(); }
  static V set1(double x) { return _mm256_set1_pd(x); }
  static V load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
  static V sub(V a, V b) { return _mm256_sub_pd(a, b); }
  static V mul(V a, V b) { return _mm256_mul_pd(a, b); }
  static V max(V a, V b) { return _mm256_max_pd(a, b); }
  static V min(V a, V b) { return _mm256_min_pd(a, b); }
  using Flags = V;
  static Flags unordered(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_UNORD_Q); }
  static Flags either(Flags a, Flags b) { return _mm256_or_pd(a, b); }
  static bool any(Flags f) { return _mm256_movemask_pd(f) != 0; }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
};

#else

template <>
struct Simd<float> {
  using V = __m128;
  static constexpr int64_t width = 4;
  static V zero() { return _mm_setzero_ps(); }
  static V set1(float x) { return _mm_set1_ps(x); }
  static V load(const float* p) { return _mm_loadu_ps(p); }
  static void store(float* p, V v) { _mm_storeu_ps(p, v); }
  static V add(V a, V b) { return _mm_add_ps(a, b); }
  static V sub(V a, V b) { return _mm_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm_mul_ps(a, b); }
  static V max(V a, V b) { return _mm_max_ps(a, b); }
  static V min(V a, V b) { return _mm_min_ps(a, b); }
  using Flags = V;
  static Flags unordered(V a, V b) { return _mm_cmpunord_ps(a, b); }
  static Flags either(Flags a, Flags b) { return _mm_or_ps(a, b); }
#if defined(__aarch64__)
  static bool any(Flags f) { return vmaxvq_u32(reinterpret_cast<uint32x4_t>(f)) != 0; }
  static V fma(V a, V b, V c) { return vfmaq_f32(c, a, b); }
  static V load(const BFloat16* p) {
    const uint16x4_t bits = vld1_u16(reinterpret_cast<const uint16_t*>(p));
    return reinterpret_cast<V>(vshll_n_u16(bits, 16));
  }
  static void store(BFloat16* p, V v) {
    const auto bits = reinterpret_cast<uint32x4_t>(v);
    const uint32x4_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    const uint32x4_t safe = v != v ? vdupq_n_u32(0x7fc00000) : rounded;
    vst1_u16(reinterpret_cast<uint16_t*>(p), vshrn_n_u32(safe, 16));
  }
  static V load(const Half* p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p))));
  }
  static void store(Half* p, V v) {
    vst1_u16(reinterpret_cast<uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32(v)));
  }
#else
  static bool any(Flags f) { return _mm_movemask_ps(f) != 0; }
  static V fma(V a, V b, V c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
  template <class S>
    requires(is_reduced_float_v<S>)
  static V load(const S* p) {
    return _mm_setr_ps(p[0], p[1], p[2], p[3]);
  }
  template <class S>
    requires(is_reduced_float_v<S>)
  static void store(S* p, V v) {
    alignas(16) float x[4];
    _mm_store_ps(x, v);
    for (int i = 0; i < 4; i++) {
      p[i] = S(x[i]);
    }
  }
#endif
};

template <>
struct Simd<double> {
  using V = __m128d;
  static constexpr int64_t width = 2;
  static V zero() { return _mm_setzero_pd(); }
  static V set1(double x) { return _mm_set1_pd(x); }
  static V load(const double* p) { return _mm_loadu_pd(p); }
  static void store(double* p, V v) { _mm_storeu_pd(p, v); }
  static V add(V a, V b) { return _mm_add_pd(a, b); }
  static V sub(V a, V b) { return _mm_sub_pd(a, b); }
  static V mul(V a, V b) { return _mm_mul_pd(a, b); }
  static V max(V a, V b) { return _mm_max_pd(a, b); }
  static V min(V a, V b) { return _mm_min_pd(a, b); }
  using Flags = V;
  static Flags unordered(V a, V b) { return _mm_cmpunord_pd(a, b); }
  static Flags either(Flags a, Flags b) { return _mm_or_pd(a, b); }
#if defined(__aarch64__)
  static bool any(Flags f) { return vmaxvq_u32(reinterpret_cast<uint32x4_t>(f)) != 0; }
  static V fma(V a, V b, V c) { return vfmaq_f64(c, a, b); }
#else
  static bool any(Flags f) { return _mm_movemask_pd(f) != 0; }
  static V fma(V a, V b, V c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }
#endif
};

#endif

#if defined(__AVX2__) && !defined(__AVX512F__)
// A mask of the first n of 8 lanes.
inline __m256i first_lanes(int64_t n) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
}
inline __m256i first_wide_lanes(int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

// The vector type that elements of T are computed in.
template <class T>
using SimdOf = Simd<std::conditional_t<is_reduced_float_v<T>, float, T>>;

// The first n < width elements, zeros behind them.
template <class T>
typename SimdOf<T>::V load_first(const T* p, int64_t n) {
#if defined(__AVX512F__)
  const auto mask = static_cast<uint32_t>((1 << n) - 1);
  if constexpr (std::is_same_v<T, float>) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), p);
  } else if constexpr (std::is_same_v<T, double>) {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), p);
  } else if constexpr (is_reduced_float_v<T>) {
    alignas(32) T padded[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(padded),
                       _mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), p));
    return SimdOf<T>::load(padded);
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    return _mm256_maskload_ps(p, first_lanes(n));
  } else if constexpr (std::is_same_v<T, double>) {
    return _mm256_maskload_pd(p, first_wide_lanes(n));
  }
#endif
  T padded[SimdOf<T>::width] = {};
  std::memcpy(padded, p, n * sizeof(T));
  return SimdOf<T>::load(padded);
}

template <class T>
void store_first(T* p, typename SimdOf<T>::V v, int64_t n) {
#if defined(__AVX512F__)
  const auto mask = static_cast<uint32_t>((1 << n) - 1);
  if constexpr (std::is_same_v<T, float>) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>(mask), v);
    return;
  } else if constexpr (std::is_same_v<T, double>) {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask), v);
    return;
  } else if constexpr (is_reduced_float_v<T>) {
    alignas(32) T padded[16];
    SimdOf<T>::store(padded, v);
    _mm256_mask_storeu_epi16(p, static_cast<__mmask16>(mask),
                             _mm256_load_si256(reinterpret_cast<const __m256i*>(padded)));
    return;
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    _mm256_maskstore_ps(p, first_lanes(n), v);
    return;
  } else if constexpr (std::is_same_v<T, double>) {
    _mm256_maskstore_pd(p, first_wide_lanes(n), v);
    return;
  }
#endif
  T padded[SimdOf<T>::width];
  SimdOf<T>::store(padded, v);
  std::memcpy(p, padded, n * sizeof(T));
}

// The first n < width lanes, zeros behind them.
template <class T>
typename Simd<T>::V keep_first(typename Simd<T>::V v, int64_t n) {
#if defined(__AVX512F__)
  const auto mask = static_cast<uint32_t>((1 << n) - 1);
  if constexpr (std::is_same_v<T, float>) {
    return _mm512_maskz_mov_ps(static_cast<__mmask16>(mask), v);
  } else {
    return _mm512_maskz_mov_pd(static_cast<__mmask8>(mask), v);
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    return _mm256_and_ps(v, _mm256_castsi256_ps(first_lanes(n)));
  } else {
    return _mm256_and_pd(v, _mm256_castsi256_pd(first_wide_lanes(n)));
  }
#else
  T lanes[Simd<T>::width];
  Simd<T>::store(lanes, v);
  std::fill(lanes + n, lanes + Simd<T>::width, T(0));
  return Simd<T>::load(lanes);
#endif
}

// n <= width elements: whole vectors the short way. Lanes from n on are zero when loaded and left
// alone when stored.
template <class S>
inline __attribute__((always_inline)) typename SimdOf<S>::V load_some(const S* p, int64_t n) {
  return RL_LIKELY(n == SimdOf<S>::width) ? SimdOf<S>::load(p) : load_first(p, n);
}
template <class S>
inline __attribute__((always_inline)) void store_some(S* p, typename SimdOf<S>::V v, int64_t n) {
  if (RL_LIKELY(n == SimdOf<S>::width)) {
    SimdOf<S>::store(p, v);
  } else {
    store_first(p, v, n);
  }
}

// Calls f(i, n) for the vectors of a row: n is the width but for the last one.
template <class T, class F>
inline __attribute__((always_inline)) void for_vectors(int64_t length, const F& f) {
  constexpr int64_t w = Simd<T>::width;
  int64_t i = 0;
  for (; i + w <= length; i += w) {
    f(i, w);
  }
  if (i < length) {
    f(i, length - i);
  }
}

// Transposes a square of `width` vectors: afterwards lane i of r[j] is what lane j of r[i] was.
#if defined(__AVX512F__)
// First inside of the 128-bit quarters, then the quarters of four vectors each.
template <class T>
inline __attribute__((always_inline)) void transpose(typename Simd<T>::V (&r)[Simd<T>::width]) {
  constexpr int width = Simd<T>::width;
  constexpr int in_quarter = width / 4;
  __m512d t[width];
  if constexpr (in_quarter == 4) {
#pragma GCC unroll 4
    for (int i = 0; i < width; i += 4) {
      const __m512d low = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(0xffff, r[i], r[i + 1]));
      const __m512d high = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(0xffff, r[i], r[i + 1]));
      const __m512d low2 = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(0xffff, r[i + 2], r[i + 3]));
      const __m512d high2 = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(0xffff, r[i + 2], r[i + 3]));
      t[i] = _mm512_maskz_unpacklo_pd(0xff, low, low2);
      t[i + 1] = _mm512_maskz_unpackhi_pd(0xff, low, low2);
      t[i + 2] = _mm512_maskz_unpacklo_pd(0xff, high, high2);
      t[i + 3] = _mm512_maskz_unpackhi_pd(0xff, high, high2);
    }
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < width; i += 2) {
      t[i] = _mm512_maskz_unpacklo_pd(0xff, r[i], r[i + 1]);
      t[i + 1] = _mm512_maskz_unpackhi_pd(0xff, r[i], r[i + 1]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < in_quarter; i++) {
    constexpr int even = 0x88;
    constexpr int odd = 0xdd;
    const __m512d* const x = t + i;
    const __m512d a = _mm512_maskz_shuffle_f64x2(0xff, x[0], x[in_quarter], even);
    const __m512d b = _mm512_maskz_shuffle_f64x2(0xff, x[0], x[in_quarter], odd);
    const __m512d c = _mm512_maskz_shuffle_f64x2(0xff, x[2 * in_quarter], x[3 * in_quarter], even);
    const __m512d d = _mm512_maskz_shuffle_f64x2(0xff, x[2 * in_quarter], x[3 * in_quarter], odd);
    using V = typename Simd<T>::V;
    r[i] = reinterpret_cast<V>(_mm512_maskz_shuffle_f64x2(0xff, a, c, even));
    r[i + in_quarter] = reinterpret_cast<V>(_mm512_maskz_shuffle_f64x2(0xff, b, d, even));
    r[i + 2 * in_quarter] = reinterpret_cast<V>(_mm512_maskz_shuffle_f64x2(0xff, a, c, odd));
    r[i + 3 * in_quarter] = reinterpret_cast<V>(_mm512_maskz_shuffle_f64x2(0xff, b, d, odd));
  }
}
#else
template <class T>
inline __attribute__((always_inline)) void transpose(typename Simd<T>::V (&r)[Simd<T>::width]) {
  constexpr int width = Simd<T>::width;
  using Lane = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T Elements __attribute__((vector_size(width * sizeof(T))));
  typedef Lane Lanes __attribute__((vector_size(width * sizeof(T))));
#pragma GCC unroll 4
  for (int step = width / 2; step > 0; step /= 2) {
    Lanes low;
    Lanes high;
    for (int lane = 0; lane < width; lane++) {
      low[lane] = (lane & step) == 0 ? lane : width + lane - step;
      high[lane] = (lane & step) == 0 ? lane + step : width + lane;
    }
#pragma GCC unroll 16
    for (int i = 0; i < width; i++) {
      if ((i & step) == 0) {
        const Elements a = reinterpret_cast<Elements>(r[i]);
        const Elements b = reinterpret_cast<Elements>(r[i + step]);
        r[i] = reinterpret_cast<typename Simd<T>::V>(__builtin_shuffle(a, b, low));
        r[i + step] = reinterpret_cast<typename Simd<T>::V>(__builtin_shuffle(a, b, high));
      }
    }
  }
}
#endif

// The upper half of 2 * Half lanes joins the lower one, until one lane is left.
template <class F, int Half, class Vector, size_t... Lane>
Vector fold_halves(Vector v, std::index_sequence<Lane...> lanes) {
  if constexpr (Half == 0) {
    return v;
  } else {
    constexpr int n = sizeof...(Lane);
    const Vector upper = __builtin_shufflevector(v, v, (static_cast<int>(Lane) + Half) % n...);
    return fold_halves<F, Half / 2>(F::combine(v, upper), lanes);
  }
}

struct Plus {
  template <class Vector>
  static Vector combine(Vector a, Vector b) {
    return a + b;
  }
};

// The sum of a vector's lanes, in a fixed order.
template <class T>
inline __attribute__((always_inline)) T sum_lanes(typename Simd<T>::V v) {
  constexpr int width = Simd<T>::width;
  typedef T Elements __attribute__((vector_size(width * sizeof(T))));
  return fold_halves<Plus, width / 2>(reinterpret_cast<Elements>(v),
                                      std::make_index_sequence<width>())[0];
}

// Several vectors at once (std::array warns about their alignment).
template <class T, size_t N>
struct Vectors {
  typename Simd<T>::V v[N];
};

// The sums over a row of the N vectors that f(i, n) returns; lanes from n on must be zero.
template <class T, size_t N, class F>
inline __attribute__((always_inline)) std::array<T, N> sums_over(int64_t length, const F& f) {
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  constexpr int unroll = 4;
  typename V::V acc[unroll][N];
  for (auto& row : acc) {
    for (auto& v : row) {
      v = V::zero();
    }
  }
  int64_t i = 0;
  for (; i + unroll * w <= length; i += unroll * w) {
#pragma GCC unroll 4
    for (int u = 0; u < unroll; u++) {
      const Vectors<T, N> terms = f(i + u * w, w);
      for (size_t k = 0; k < N; k++) {
        acc[u][k] = V::add(acc[u][k], terms.v[k]);
      }
    }
  }
  for (; i < length; i += w) {
    const Vectors<T, N> terms = f(i, std::min(w, length - i));
    for (size_t k = 0; k < N; k++) {
      acc[0][k] = V::add(acc[0][k], terms.v[k]);
    }
  }
  std::array<T, N> sums;
  for (size_t k = 0; k < N; k++) {
    sums[k] = sum_lanes<T>(V::add(V::add(acc[0][k], acc[1][k]), V::add(acc[2][k], acc[3][k])));
  }
  return sums;
}

}  // namespace rushlight::cpu::RL_ISA
