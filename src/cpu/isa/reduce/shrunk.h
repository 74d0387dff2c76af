// Doubles whose squares would overflow, made small on the way into a reduction.
#pragma once

#include "cpu/isa/reduce/fold.h"

namespace rushlight::cpu::RL_ISA {

inline constexpr double shrinks_by = 0x1p-600;

// Reads T, doubles or complex ones, as A, and makes it smaller.
template <class A, class T>
void read_shrunk(void* to, const void* from, int64_t stride, int64_t n) {
  const char* in = static_cast<const char*>(from);
  for (int64_t i = 0; i < n; i++) {
    const T x = *reinterpret_cast<const T*>(in + i * stride) * T(shrinks_by);
    if constexpr (is_complex_v<T> && !is_complex_v<A>) {
      static_cast<A*>(to)[i] = math::hypot(x.re, x.im);
    } else {
      static_cast<A*>(to)[i] = x;
    }
  }
}

inline bool is_finite(double x) { return x - x == 0; }

}  // namespace rushlight::cpu::RL_ISA
