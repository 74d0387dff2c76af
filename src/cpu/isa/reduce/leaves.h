// Leaf functions of formulas that are not made of `map`, in vector code.
#pragma once

#include <algorithm>

#include "cpu/isa/reduce/fold.h"
#include "cpu/isa/reduce/turned_rows.h"
#include "kernels/by_size.h"

namespace rushlight::cpu::RL_ISA {

template <class T>
struct Leaf<fold::Count<T>> : Merging<fold::Count<T>> {
  using A = uint8_t;
  using S = int64_t;
  void row(const A* x, int64_t n, int64_t, S& s) const {
    int32_t total = 0;
    for (int64_t i = 0; i < n; i++) {
      total += x[i] != 0;
    }
    s = total;
  }
  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, S* s) const {
    std::fill(s, s + cols, 0);
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t c = 0; c < cols; c++) {
        s[c] += x[r * ld + c] != 0;
      }
    }
  }
};

template <class F>
  requires requires { F::largest; }
struct Leaf<F> : Merging<F> {
  using A = typename F::type;
  using S = typename F::State;
  using Best = std::conditional_t<F::largest, fold::Max<A>, fold::Min<A>>;
  // x ousts an older y.
  static bool beats(A x, A y) {
    const bool better = F::largest ? x > y : x < y;
    return better | ((x != x) & (y == y));
  }

  void row(const A* x, int64_t n, int64_t first, S& s) const {
    const A best = fold_row<Best>(x, n);
    const int64_t i = best == best ? find(x, n, [best](A v) { return v == best; })
                                   : find(x, n, [](A v) { return v != v; });
    s = {x[i], first + i};
  }

  // The first element that `is_it`; there is one. Blocks without it are passed over as vectors.
  template <class Test>
  static int64_t find(const A* x, int64_t n, const Test& is_it) {
    using Found = typename unsigned_of<sizeof(A)>::type;  // a bool would keep the loop scalar
    constexpr int64_t step = 256 / static_cast<int64_t>(sizeof(A));
    int64_t i = 0;
    for (; i + step <= n; i += step) {
      Found found = 0;
      for (int64_t j = 0; j < step; j++) {
        found = static_cast<Found>(found | (is_it(x[i + j]) ? 1 : 0));
      }
      if (found != 0) {
        break;
      }
    }
    while (!is_it(x[i])) {
      i++;
    }
    return i;
  }

  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t first, S* s) const {
    using Index = typename unsigned_of<sizeof(A)>::type;  // as wide as A, for the vectors' sake
    constexpr int64_t most = tile_bytes / static_cast<int64_t>(sizeof(A));
    alignas(64) A value[most];
    alignas(64) Index index[most];
    for (int64_t c = 0; c < cols; c++) {
      value[c] = x[c];
      index[c] = 0;
    }
    for (int64_t r = 1; r < rows; r++) {
      const A* row = x + r * ld;
      for (int64_t c = 0; c < cols; c++) {
        const bool better = beats(row[c], value[c]);
        value[c] = better ? row[c] : value[c];
        index[c] = better ? static_cast<Index>(r) : index[c];
      }
    }
    for (int64_t c = 0; c < cols; c++) {
      s[c] = {value[c], first + static_cast<int64_t>(index[c])};
    }
  }

  void merge(S* older, int64_t, const S* newer, int64_t, int64_t width) const {
    for (int64_t i = 0; i < width; i++) {
      if (beats(newer[i].first, older[i].first)) {
        older[i] = newer[i];
      }
    }
  }
};

template <class T>
struct Leaf<fold::MinMax<T>> : Merging<fold::MinMax<T>> {
  using A = T;
  using S = fold::Pair<T, T>;
  void row(const A* x, int64_t n, int64_t, S& s) const {
    s = {fold_row<fold::Min<T>>(x, n), fold_row<fold::Max<T>>(x, n)};
  }
  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, S* s) const {
    constexpr int64_t most = tile_bytes / static_cast<int64_t>(sizeof(A));
    alignas(64) A low[most];
    alignas(64) A high[most];
    fold_columns<fold::Min<T>>(x, ld, rows, cols, low);
    fold_columns<fold::Max<T>>(x, ld, rows, cols, high);
    for (int64_t c = 0; c < cols; c++) {
      s[c] = {low[c], high[c]};
    }
  }
};

template <class T>
struct Leaf<fold::LogSumExp<T>> : Merging<fold::LogSumExp<T>> {
  using F = fold::LogSumExp<T>;
  using A = T;
  using S = typename F::State;
  // exp(d[i]) in place, for n rounded up to the granule.
  static void exp_in_place(T* d, int64_t n) {
    n = round_up_to_granule(n);
    for (int64_t i = 0; i < n; i++) {
      d[i] = math::exp(d[i]);
    }
  }

  void row(const A* x, int64_t n, int64_t, S& s) const {
    alignas(64) T d[row_leaf];
    const T top = fold_row<fold::Max<T>>(x, n);
    const T base = F::shift(top);
    for (int64_t i = 0; i < n; i++) {
      d[i] = x[i] - base;
    }
    std::fill(d + n, d + round_up_to_granule(n), T(0));
    exp_in_place(d, n);
    s = {top, fold_row<fold::Sum<T>>(d, n)};
  }

  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, S* s) const {
    constexpr int64_t most = tile_bytes / static_cast<int64_t>(sizeof(T));
    alignas(64) T top[most];
    alignas(64) T sum[most];
    alignas(64) T d[most];
    fold_columns<fold::Max<T>>(x, ld, rows, cols, top);
    std::fill(sum, sum + cols, T(0));
    std::fill(d, d + most, T(0));
    for (int64_t r = 0; r < rows; r++) {
      const A* row = x + r * ld;
      for (int64_t c = 0; c < cols; c++) {
        d[c] = row[c] - F::shift(top[c]);
      }
      exp_in_place(d, cols);
      for (int64_t c = 0; c < cols; c++) {
        sum[c] += d[c];
      }
    }
    for (int64_t c = 0; c < cols; c++) {
      s[c] = {top[c], sum[c]};
    }
  }
};

}  // namespace rushlight::cpu::RL_ISA
