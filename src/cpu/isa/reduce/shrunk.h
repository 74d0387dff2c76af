// Doubles whose squares would overflow or vanish, made small or large on the way into a reduction.
#pragma once

#include "cpu/isa/reduce/fold.h"

namespace rushlight::cpu::RL_ISA {

inline constexpr double shrinks_by = 0x1p-600;
inline constexpr double grows_by = 0x1p+600;

// Reads T, double or complex, times a power of two.
template <class T, double factor>
void read_times(void* to, const void* from, int64_t stride, int64_t n) {
  const char* in = static_cast<const char*>(from);
  for (int64_t i = 0; i < n; i++) {
    static_cast<T*>(to)[i] = *reinterpret_cast<const T*>(in + i * stride) * T(factor);
  }
}

inline bool is_finite(double x) { return x - x == 0; }

}  // namespace rushlight::cpu::RL_ISA
