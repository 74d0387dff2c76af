// What products with weights in blocks have in common: whole sums become floats, a panel's lanes
// become rows of results.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/isa/matmul/byte_products.h"
#include "cpu/isa/simd.h"
#include "kernels/int8_layout.h"

namespace rushlight::cpu::RL_ISA {

using F = Simd<float>;
constexpr int vectors = int8_panel / lanes;  // of a panel

#if defined(__AVX512BW__)
inline F::V to_floats(V x) { return _mm512_maskz_cvtepi32_ps(0xffff, x); }
inline V multiply_lanes(V a, V b) { return _mm512_mullo_epi32(a, b); }
inline V widened(const uint8_t* p) {
  return _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline V widened(const int8_t* p) {
  return _mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
#elif defined(__AVX2__)
inline F::V to_floats(V x) { return _mm256_cvtepi32_ps(x); }
inline V multiply_lanes(V a, V b) { return _mm256_mullo_epi32(a, b); }
inline V widened(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
inline V widened(const int8_t* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
#else
inline F::V to_floats(V x) { return _mm_cvtepi32_ps(x); }
inline V multiply_lanes(V a, V b) { return _mm_mullo_epi32(a, b); }
inline V four_bytes(const void* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof(four));
  return _mm_cvtsi32_si128(four);
}
inline V widened(const uint8_t* p) { return _mm_cvtepu8_epi32(four_bytes(p)); }
inline V widened(const int8_t* p) { return _mm_cvtepi8_epi32(four_bytes(p)); }
#endif

// Some rows of a panel's results, from a column on.
template <class Problem>
void write_results(const Problem& g, int64_t row, int64_t rows, int64_t column,
                   const F::V* totals) {
  const int64_t n = std::min(int8_panel, g.columns - column);
  for (int64_t r = 0; r < rows; r++) {
    float y[int8_panel];
    for (int v = 0; v < vectors; v++) {
      F::store(y + v * lanes, totals[r * vectors + v]);
    }
    float* const to = g.out + (row + r) * g.columns + column;
    for (int64_t j = 0; j < n; j++) {
      to[j] = g.bias == nullptr ? y[j] : y[j] + g.bias[column + j];
    }
  }
}

}  // namespace rushlight::cpu::RL_ISA
