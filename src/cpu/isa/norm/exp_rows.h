// Sums of exponentials along a row, for softmax and the losses over classes.
#pragma once

#include "cpu/isa/reduce/fold.h"
#include "cpu/isa/reduce/turned_rows.h"

namespace rushlight::cpu::RL_ISA {

// The first n elements of a granule, zeros behind them.
template <class A>
RL_INLINE void load_granule(A* to, const A* from, int64_t n) {
  for_vectors<A>(granule, [&](int64_t j, int64_t w) {
    Simd<A>::store(to + j, load_some(from + j, std::clamp<int64_t>(n - j, 0, w)));
  });
}

// y = exp(x - shift) where it is wanted; returns the sum. Lanes add up side by side, and meet at
// the end of each leaf.
template <bool Keep, class A>
A exp_row(const A* x, [[maybe_unused]] A* y, int64_t n, A shift) {
  constexpr int64_t lanes = lane_bytes / static_cast<int64_t>(sizeof(A));
  A total = 0;
  for (int64_t leaf = 0; leaf < n; leaf += row_leaf) {
    const int64_t end = std::min(leaf + row_leaf, n);
    alignas(64) A sums[lanes] = {};
    int64_t i = leaf;
    for (; i + lanes <= end; i += lanes) {
      for (int64_t j = 0; j < lanes; j++) {
        const A e = math::exp(x[i + j] - shift);
        if constexpr (Keep) {
          y[i + j] = e;
        }
        sums[j] += e;
      }
    }
    for (int64_t lane = 0; i < end; i += granule, lane += granule) {
      const int64_t m = std::min(granule, end - i);
      alignas(64) A part[granule];
      if (m == granule) {
        for (int64_t j = 0; j < granule; j++) {
          part[j] = math::exp(x[i + j] - shift);
        }
      } else {
        load_granule(part, x + i, m);
        for (int64_t j = 0; j < granule; j++) {
          const A e = math::exp(part[j] - shift);
          part[j] = j < m ? e : A(0);
        }
      }
      for (int64_t j = 0; j < granule; j++) {
        sums[lane + j] += part[j];
      }
      if constexpr (Keep) {
        for_vectors<A>(
            m, [&](int64_t j, int64_t w) { store_some(y + i + j, Simd<A>::load(part + j), w); });
      }
    }
    total += fold_row<fold::Sum<A>>(sums, lanes);
  }
  return total;
}

// Rows of at most this many elements are turned on their side.
inline constexpr int64_t short_exp_row = 64;

}  // namespace rushlight::cpu::RL_ISA
