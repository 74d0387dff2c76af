// Four products of bytes, exact, added to a sum of 32 bits: in one instruction where the processor
// has it; by pairs in 16 bits where codes have seven bits; and with terms widened to 16 bits.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "cpu/isa/sse.h"

namespace rushlight::cpu::RL_ISA {

// ---- vectors of 32-bit lanes, each also four bytes or two numbers of 16 bits ----

#if defined(__AVX512BW__)
using V = __m512i;
inline V load(const void* p) { return _mm512_loadu_si512(p); }
inline void store(void* p, V v) { _mm512_storeu_si512(p, v); }
inline V broadcast(int32_t x) { return _mm512_set1_epi32(x); }
inline V add(V a, V b) { return _mm512_add_epi32(a, b); }
inline V both(V a, V b) { return _mm512_and_si512(a, b); }
inline V add_pairs(V a, V b) { return _mm512_madd_epi16(a, b); }
inline V add_byte_pairs(V a, V b) { return _mm512_maddubs_epi16(a, b); }
inline V shifted_left(V a) { return _mm512_slli_epi16(a, 8); }
inline V shifted_right(V a) { return _mm512_srai_epi16(a, 8); }
inline V high_bytes(V a) { return _mm512_srli_epi16(a, 8); }
inline V add_halves(V a, V b) { return _mm512_add_epi16(a, b); }
#elif defined(__AVX2__)
using V = __m256i;
inline V load(const void* p) { return _mm256_loadu_si256(static_cast<const V*>(p)); }
inline void store(void* p, V v) { _mm256_storeu_si256(static_cast<V*>(p), v); }
inline V broadcast(int32_t x) { return _mm256_set1_epi32(x); }
inline V add(V a, V b) { return _mm256_add_epi32(a, b); }
inline V both(V a, V b) { return _mm256_and_si256(a, b); }
inline V add_pairs(V a, V b) { return _mm256_madd_epi16(a, b); }
inline V add_byte_pairs(V a, V b) { return _mm256_maddubs_epi16(a, b); }
inline V shifted_left(V a) { return _mm256_slli_epi16(a, 8); }
inline V shifted_right(V a) { return _mm256_srai_epi16(a, 8); }
inline V high_bytes(V a) { return _mm256_srli_epi16(a, 8); }
inline V add_halves(V a, V b) { return _mm256_add_epi16(a, b); }
#else
using V = __m128i;
inline V load(const void* p) { return _mm_loadu_si128(static_cast<const V*>(p)); }
inline void store(void* p, V v) { _mm_storeu_si128(static_cast<V*>(p), v); }
inline V broadcast(int32_t x) { return _mm_set1_epi32(x); }
inline V add(V a, V b) { return _mm_add_epi32(a, b); }
inline V both(V a, V b) { return _mm_and_si128(a, b); }
inline V add_pairs(V a, V b) { return _mm_madd_epi16(a, b); }
#if defined(__x86_64__)
inline V add_byte_pairs(V a, V b) { return _mm_maddubs_epi16(a, b); }
inline V shifted_left(V a) { return _mm_slli_epi16(a, 8); }
inline V shifted_right(V a) { return _mm_srai_epi16(a, 8); }
inline V high_bytes(V a) { return _mm_srli_epi16(a, 8); }
inline V add_halves(V a, V b) { return _mm_add_epi16(a, b); }
#endif
#endif
constexpr int64_t lanes = sizeof(V) / sizeof(int32_t);

// ---- ways to add four products of a code without a sign and a weight with one to each lane ----

// Ways that take both as they lie.
struct AsTheyLie {
  using Codes = V;
  using Weights = V;
  static V codes(V x) { return x; }
  static V weights(V w) { return w; }
};

#if defined(__AVX2__) || defined(__aarch64__)
// Written as an instruction: the code is compiled for processors without it.
struct OneInstruction : AsTheyLie {
  static V add_products(V sum, V codes, V weights) {
#if defined(__AVX512BW__)
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(weights));
#elif defined(__aarch64__)
    asm(".arch_extension i8mm\n\tusdot %0.4s, %1.16b, %2.16b"
        : "+w"(sum)
        : "w"(codes), "w"(weights));
#else
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(codes), "x"(weights));
#endif
    return sum;
  }
};
#endif

#if defined(__aarch64__)

// ARMv8.2 has the instruction for codes that have a sign. Seven bits are the same with one.
inline V add_signed_products(V sum, V codes, V weights) {
  return whole_of(vdotq_s32(lanes_of<int32x4_t>(sum), lanes_of<int8x16_t>(codes),
                            lanes_of<int8x16_t>(weights)));
}

struct SevenBits : AsTheyLie {
  static V add_products(V sum, V codes, V weights) {
    return add_signed_products(sum, codes, weights);
  }
};

using SixBits = SevenBits;

// Of eight bits 128 is taken away, and 128 times the sum of the weights added.
struct Widened {
  struct Weights {
    V bytes;
    V sums;
  };
  using Codes = V;
  static V codes(V x) { return _mm_xor_si128(x, _mm_set1_epi8(-128)); }
  static Weights weights(V w) {
    const V sums = add_signed_products(broadcast(0), _mm_set1_epi8(1), w);
    return {w, _mm_slli_epi32(sums, 7)};
  }
  static V add_products(V sum, V codes, const Weights& weights) {
    return add(add_signed_products(sum, codes, weights.bytes), weights.sums);
  }
};

#else

// Two products of a code below 128 are at most 2 * 127 * 128 in size, which 16 bits hold.
struct SevenBits : AsTheyLie {
  static V add_products(V sum, V codes, V weights) {
    return add(sum, add_pairs(add_byte_pairs(codes, weights), broadcast(0x00010001)));
  }
};

// Codes of at most six bits: the sums of four products still fit 16 bits, 4 * 63 * 127.
struct SixBits : SevenBits {};

struct Widened {
  struct Pairs {
    V even;  // bytes 0 and 2 of a lane
    V odd;
  };
  using Codes = Pairs;
  using Weights = Pairs;
  static Pairs codes(V x) { return {both(x, broadcast(0x00ff00ff)), high_bytes(x)}; }
  static Pairs weights(V w) { return {shifted_right(shifted_left(w)), shifted_right(w)}; }
  static V add_products(V sum, const Pairs& codes, const Pairs& weights) {
    return add(sum, add(add_pairs(codes.even, weights.even), add_pairs(codes.odd, weights.odd)));
  }
};

#endif

#if defined(__x86_64__) && !defined(__AVX2__)
using OneInstruction = Widened;  // there is none
#endif

// The sum and eight products in each lane.
template <class Way>
inline __attribute__((always_inline)) V add_two(V sum, const typename Way::Codes& a,
                                                const typename Way::Weights& x,
                                                const typename Way::Codes& b,
                                                const typename Way::Weights& y) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<Way, SixBits>) {
    const V pairs = add_halves(add_byte_pairs(a, x), add_byte_pairs(b, y));
    return add(sum, add_pairs(pairs, broadcast(0x00010001)));
  }
#endif
  return Way::add_products(Way::add_products(sum, a, x), b, y);
}

inline bool has_one_instruction() {
#if defined(__AVX2__)
  static const bool has = [] {
    __builtin_cpu_init();
#if defined(__AVX512BW__)
    return __builtin_cpu_supports("avx512vnni") != 0;
#else
    return __builtin_cpu_supports("avxvnni") != 0;
#endif
  }();
  return has;
#elif defined(__aarch64__)
  static const bool has = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  return has;
#else
  return false;
#endif
}

}  // namespace rushlight::cpu::RL_ISA
