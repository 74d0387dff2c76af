// Vectors of 16 bytes by the names that x86-64 gives them. What kernels do in such vectors on every
// processor is written once, in these names: on x86-64 they are the compiler's own, on aarch64 the
// few that are used stand here, over NEON. Each gives the bits of its namesake.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#else

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

// NOLINTBEGIN(bugprone-reserved-identifier): names of x86-64
typedef float32x4_t __m128;
typedef float64x2_t __m128d;
typedef int64x2_t __m128i;

namespace rushlight::cpu::RL_ISA {

#define RL_SSE inline __attribute__((always_inline))

// What the lanes of whole numbers are.
template <class V>
RL_SSE V lanes_of(__m128i x) {
  return reinterpret_cast<V>(x);
}
template <class V>
RL_SSE __m128i whole_of(V x) {
  return reinterpret_cast<__m128i>(x);
}

// ---- memory ----

template <class V, class P>
RL_SSE V vector_at(const P* p) {
  V v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
RL_SSE __m128 _mm_loadu_ps(const float* p) { return vld1q_f32(p); }
RL_SSE __m128d _mm_loadu_pd(const double* p) { return vld1q_f64(p); }
RL_SSE __m128i _mm_loadu_si128(const __m128i* p) { return vector_at<__m128i>(p); }
RL_SSE __m128i _mm_load_si128(const __m128i* p) { return vector_at<__m128i>(p); }
// The first eight bytes, or four, and zeros.
RL_SSE __m128i _mm_loadl_epi64(const __m128i* p) {
  int64_t x;
  std::memcpy(&x, p, sizeof(x));
  return __m128i{x, 0};
}
RL_SSE __m128i _mm_cvtsi32_si128(int32_t x) { return whole_of(int32x4_t{x, 0, 0, 0}); }
RL_SSE __m128i _mm_loadu_si32(const void* p) {
  int32_t x;
  std::memcpy(&x, p, sizeof(x));
  return _mm_cvtsi32_si128(x);
}
RL_SSE void _mm_storeu_ps(float* p, __m128 x) { vst1q_f32(p, x); }
RL_SSE void _mm_store_ps(float* p, __m128 x) { vst1q_f32(p, x); }
RL_SSE void _mm_storeu_pd(double* p, __m128d x) { vst1q_f64(p, x); }
RL_SSE void _mm_storeu_si128(__m128i* p, __m128i x) { std::memcpy(p, &x, sizeof(x)); }
RL_SSE void _mm_store_si128(__m128i* p, __m128i x) { std::memcpy(p, &x, sizeof(x)); }
// Past the caches on x86-64. Here a processor sees by itself that whole lines are written.
RL_SSE void _mm_stream_si128(__m128i* p, __m128i x) { std::memcpy(p, &x, sizeof(x)); }
RL_SSE void _mm_sfence() {}

RL_SSE __m128 _mm_setzero_ps() { return __m128{}; }
RL_SSE __m128d _mm_setzero_pd() { return __m128d{}; }
RL_SSE __m128i _mm_setzero_si128() { return __m128i{}; }
RL_SSE __m128 _mm_set1_ps(float x) { return vdupq_n_f32(x); }
RL_SSE __m128d _mm_set1_pd(double x) { return vdupq_n_f64(x); }
RL_SSE __m128i _mm_set1_epi32(int32_t x) { return whole_of(vdupq_n_s32(x)); }
RL_SSE __m128i _mm_set1_epi8(int8_t x) { return whole_of(vdupq_n_s8(x)); }
template <class... Bytes>
RL_SSE __m128i _mm_setr_epi8(Bytes... bytes) {
  return whole_of(int8x16_t{static_cast<int8_t>(bytes)...});
}
RL_SSE int32_t _mm_cvtsi128_si32(__m128i x) { return lanes_of<int32x4_t>(x)[0]; }

// ---- floating-point numbers ----

RL_SSE __m128 _mm_add_ps(__m128 a, __m128 b) { return a + b; }
RL_SSE __m128d _mm_add_pd(__m128d a, __m128d b) { return a + b; }
RL_SSE __m128 _mm_sub_ps(__m128 a, __m128 b) { return a - b; }
RL_SSE __m128d _mm_sub_pd(__m128d a, __m128d b) { return a - b; }
RL_SSE __m128 _mm_mul_ps(__m128 a, __m128 b) { return a * b; }
RL_SSE __m128d _mm_mul_pd(__m128d a, __m128d b) { return a * b; }
// b where either is NaN.
RL_SSE __m128 _mm_max_ps(__m128 a, __m128 b) { return a > b ? a : b; }
RL_SSE __m128d _mm_max_pd(__m128d a, __m128d b) { return a > b ? a : b; }
RL_SSE __m128 _mm_min_ps(__m128 a, __m128 b) { return a < b ? a : b; }
RL_SSE __m128d _mm_min_pd(__m128d a, __m128d b) { return a < b ? a : b; }
RL_SSE __m128 _mm_cmpunord_ps(__m128 a, __m128 b) {
  return reinterpret_cast<__m128>((a != a) | (b != b));
}
RL_SSE __m128d _mm_cmpunord_pd(__m128d a, __m128d b) {
  return reinterpret_cast<__m128d>((a != a) | (b != b));
}
RL_SSE __m128 _mm_or_ps(__m128 a, __m128 b) {
  return reinterpret_cast<__m128>(reinterpret_cast<__m128i>(a) | reinterpret_cast<__m128i>(b));
}
RL_SSE __m128d _mm_or_pd(__m128d a, __m128d b) {
  return reinterpret_cast<__m128d>(reinterpret_cast<__m128i>(a) | reinterpret_cast<__m128i>(b));
}
RL_SSE __m128 _mm_cvtepi32_ps(__m128i x) { return vcvtq_f32_s32(lanes_of<int32x4_t>(x)); }
RL_SSE void _MM_TRANSPOSE4_PS(__m128& a, __m128& b, __m128& c, __m128& d) {
  const __m128 low = vzip1q_f32(a, c);
  const __m128 high = vzip2q_f32(a, c);
  const __m128 low2 = vzip1q_f32(b, d);
  const __m128 high2 = vzip2q_f32(b, d);
  a = vzip1q_f32(low, low2);
  b = vzip2q_f32(low, low2);
  c = vzip1q_f32(high, high2);
  d = vzip2q_f32(high, high2);
}

// ---- whole numbers ----

// Additions wrap around, as x86-64's do.
RL_SSE __m128i _mm_add_epi16(__m128i a, __m128i b) {
  return whole_of(lanes_of<uint16x8_t>(a) + lanes_of<uint16x8_t>(b));
}
RL_SSE __m128i _mm_add_epi32(__m128i a, __m128i b) {
  return whole_of(lanes_of<uint32x4_t>(a) + lanes_of<uint32x4_t>(b));
}
RL_SSE __m128i _mm_sub_epi32(__m128i a, __m128i b) {
  return whole_of(lanes_of<uint32x4_t>(a) - lanes_of<uint32x4_t>(b));
}
RL_SSE __m128i _mm_mullo_epi32(__m128i a, __m128i b) {
  return whole_of(lanes_of<uint32x4_t>(a) * lanes_of<uint32x4_t>(b));
}
RL_SSE __m128i _mm_and_si128(__m128i a, __m128i b) { return a & b; }
RL_SSE __m128i _mm_or_si128(__m128i a, __m128i b) { return a | b; }
RL_SSE __m128i _mm_xor_si128(__m128i a, __m128i b) { return a ^ b; }

// Shifts by fewer bits than a lane has.
RL_SSE __m128i _mm_slli_epi16(__m128i x, int n) { return whole_of(lanes_of<uint16x8_t>(x) << n); }
RL_SSE __m128i _mm_srli_epi16(__m128i x, int n) { return whole_of(lanes_of<uint16x8_t>(x) >> n); }
RL_SSE __m128i _mm_srai_epi16(__m128i x, int n) { return whole_of(lanes_of<int16x8_t>(x) >> n); }
RL_SSE __m128i _mm_slli_epi32(__m128i x, int n) { return whole_of(lanes_of<uint32x4_t>(x) << n); }
RL_SSE __m128i _mm_srai_epi32(__m128i x, int n) { return whole_of(lanes_of<int32x4_t>(x) >> n); }
RL_SSE __m128i _mm_sra_epi32(__m128i x, __m128i n) {
  return _mm_srai_epi32(x, _mm_cvtsi128_si32(n));
}

// The first lanes, wider.
RL_SSE __m128i _mm_cvtepu8_epi16(__m128i x) {
  return whole_of(vmovl_u8(vget_low_u8(lanes_of<uint8x16_t>(x))));
}
RL_SSE __m128i _mm_cvtepu8_epi32(__m128i x) {
  return whole_of(vmovl_u16(vget_low_u16(vmovl_u8(vget_low_u8(lanes_of<uint8x16_t>(x))))));
}
RL_SSE __m128i _mm_cvtepi8_epi32(__m128i x) {
  return whole_of(vmovl_s16(vget_low_s16(vmovl_s8(vget_low_s8(lanes_of<int8x16_t>(x))))));
}
// The lanes of both, narrower: what the type does not hold becomes its largest or smallest.
RL_SSE __m128i _mm_packs_epi32(__m128i a, __m128i b) {
  return whole_of(vqmovn_high_s32(vqmovn_s32(lanes_of<int32x4_t>(a)), lanes_of<int32x4_t>(b)));
}
RL_SSE __m128i _mm_packus_epi16(__m128i a, __m128i b) {
  return whole_of(vqmovun_high_s16(vqmovun_s16(lanes_of<int16x8_t>(a)), lanes_of<int16x8_t>(b)));
}
// Lanes of the lower halves, or the upper ones, in turns.
RL_SSE __m128i _mm_unpacklo_epi8(__m128i a, __m128i b) {
  return whole_of(vzip1q_u8(lanes_of<uint8x16_t>(a), lanes_of<uint8x16_t>(b)));
}
RL_SSE __m128i _mm_unpackhi_epi8(__m128i a, __m128i b) {
  return whole_of(vzip2q_u8(lanes_of<uint8x16_t>(a), lanes_of<uint8x16_t>(b)));
}
RL_SSE __m128i _mm_unpacklo_epi32(__m128i a, __m128i b) {
  return whole_of(vzip1q_u32(lanes_of<uint32x4_t>(a), lanes_of<uint32x4_t>(b)));
}
// Byte i is byte at[i] of x, zero where at[i] is negative.
RL_SSE __m128i _mm_shuffle_epi8(__m128i x, __m128i at) {
  const uint8x16_t place = lanes_of<uint8x16_t>(at) & vdupq_n_u8(0x8f);
  return whole_of(vqtbl1q_u8(lanes_of<uint8x16_t>(x), place));
}
// Products of 16-bit lanes, and sums of lanes, two neighbours each.
RL_SSE __m128i _mm_madd_epi16(__m128i a, __m128i b) {
  const auto x = lanes_of<int16x8_t>(a);
  const auto y = lanes_of<int16x8_t>(b);
  return whole_of(vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
}
RL_SSE __m128i _mm_hadd_epi32(__m128i a, __m128i b) {
  return whole_of(vpaddq_s32(lanes_of<int32x4_t>(a), lanes_of<int32x4_t>(b)));
}

#undef RL_SSE

}  // namespace rushlight::cpu::RL_ISA
// NOLINTEND(bugprone-reserved-identifier)

#endif
