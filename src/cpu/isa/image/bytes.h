// Bytes made of sums in fixed point.
#pragma once

#include <cstring>

#include "cpu/isa/reduce/fold.h"
#include "cpu/isa/sse.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Sums of bytes in fixed point, a vector of them.
typedef int32_t Sums __attribute__((vector_size(vector_bytes)));
constexpr int64_t sums_width = vector_bytes / 4;

// Sums over 1 << bits, rounded down; values beyond 0 and 255 become those.
inline void store_bytes(uint8_t* to, Sums sums, int bits) {
  const Sums whole = sums >> bits;
#if defined(__AVX512F__)
  const __m512i positive =
      _mm512_maskz_max_epi32(0xffff, reinterpret_cast<__m512i>(whole), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtusepi32_epi8(0xffff, positive));
#elif defined(__AVX2__)
  const __m256i v = reinterpret_cast<__m256i>(whole);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
#else
  const __m128i words = _mm_packs_epi32(reinterpret_cast<__m128i>(whole), _mm_setzero_si128());
  const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::memcpy(to, &bytes, sizeof(bytes));
#endif
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
