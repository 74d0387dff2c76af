// Two terms of a sum that lie side by side as bfloat16, of which processors with AVX512-BF16 or AMX
// add up both products in one instruction.
#pragma once

#include "cpu/isa/matmul/gemm_engine.h"

namespace rushlight::cpu::RL_ISA {

struct __attribute__((may_alias, packed, aligned(2))) Pair {
  uint32_t bits;
};

#if defined(__AVX512F__)
template <>
struct Terms<Pair> {
  using Sum = float;
  using V = __m512;
  static V load(const Pair* p) { return _mm512_loadu_ps(p); }
  static V set1(Pair x) { return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(x.bits))); }
  // The upper halves of the numbers in x and in y, side by side.
  static V join(V x, V y) {
    const __m512i first = _mm512_maskz_srli_epi32(0xffff, _mm512_castps_si512(x), 16);
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    return _mm512_castsi512_ps(
        _mm512_or_si512(first, _mm512_and_si512(_mm512_castps_si512(y), upper)));
  }
  // What lanes of x and of y were loaded from, side by side; the first n.
  static void store_pairs(Pair* to, V x, V y, int64_t n) {
    store_some(reinterpret_cast<float*>(to), join(x, y), n);
  }
  // Not an intrinsic: this file is compiled for processors that lack the instruction, too.
  static V fma(V a, V b, V c) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  }
};
#endif

}  // namespace rushlight::cpu::RL_ISA
