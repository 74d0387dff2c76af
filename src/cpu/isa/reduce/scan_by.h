// The kernel that a formula of src/kernels/reduce.h becomes as a running reduction along a
// dimension. Rows that lie along memory are scanned within vectors, and long ones by chunks whose
// totals are found first; along an outer dimension many columns advance side by side. Sums and
// products of float32 are kept in double.
#pragma once

#include <algorithm>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/dim_split.h"
#include "cpu/isa/reduce/fold.h"
#include "cpu/isa/reduce/turned_rows.h"
#include "cpu/readable.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

inline constexpr int64_t long_row =
    1 << 16;  // rows of more elements are scanned by chunks of this many
inline constexpr int64_t column_tile = 128;

// to[i] becomes the total of carry, x[0], ..., x[i]; `to` may be x. Returns the last.
template <class F, class A>
A scan_row(const A* x, A* to, int64_t n, A carry) {
  int64_t i = 0;
  if constexpr (std::is_arithmetic_v<A> && requires(A x) { F::map(x); }) {
    typedef A Vector __attribute__((vector_size(vector_bytes), aligned(sizeof(A)), may_alias));
    using Lane = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
    typedef Lane Mask __attribute__((vector_size(vector_bytes)));
    constexpr int lanes = vector_bytes / static_cast<int>(sizeof(A));
    Vector neutral;
    Vector start;
    Mask shift[4];
    Mask last;
    for (int j = 0; j < lanes; j++) {
      neutral[j] = F::identity();
      start[j] = carry;
      last[j] = lanes - 1;
      for (int s = 0; s < 4; s++) {
        shift[s][j] = j < (1 << s) ? lanes + j : j - (1 << s);
      }
    }
    for (; i + lanes <= n; i += lanes) {
      Vector v = *reinterpret_cast<const Vector*>(x + i);
      v = F::combine(v, Vector(__builtin_shuffle(v, neutral, shift[0])));
      if constexpr (lanes > 2) {
        v = F::combine(v, Vector(__builtin_shuffle(v, neutral, shift[1])));
      }
      if constexpr (lanes > 4) {
        v = F::combine(v, Vector(__builtin_shuffle(v, neutral, shift[2])));
      }
      if constexpr (lanes > 8) {
        v = F::combine(v, Vector(__builtin_shuffle(v, neutral, shift[3])));
      }
      *reinterpret_cast<Vector*>(to + i) = F::combine(v, start);
      // Vectors wait for each other in this sum alone; its lanes are what v[lanes - 1] has become.
      start = F::combine(Vector(__builtin_shuffle(v, last)), start);
    }
    carry = start[0];
  }
  for (; i < n; i++) {
    carry = F::combine(carry, x[i]);
    to[i] = carry;
  }
  return carry;
}

template <class F>
void scan(const Tensor& out, const Tensor& given, int64_t dim, const char* name) {
  using A = typename F::type;
  if (out.numel() == 0) {
    return;
  }
  const Tensor self = contiguous_raw(computable(given, dtype_of_v<A>));
  const DimSplit s = dim_split_of(self, dim);
  const ConvertRun read = reader<A>(name, self.dtype());
  const ConvertRun write = writer<A>(name, out.dtype());
  const int64_t in_size = self.element_size();
  const int64_t out_size = out.element_size();
  const char* from = static_cast<const char*>(self.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());

  // Scans [begin, end) of the elements of one row; `keep` writes what comes of it. Elements that
  // are in the type of the totals already are read, and written, where they are.
  const bool read_in_place = self.dtype() == dtype_of_v<A>;
  const bool write_in_place = out.dtype() == dtype_of_v<A>;
  const auto scan_part = [&](int64_t begin, int64_t end, A carry, bool keep) {
    alignas(64) A buffer[row_leaf];
    for (int64_t i = begin; i < end; i += row_leaf) {
      const int64_t m = std::min(row_leaf, end - i);
      A* const result = keep && write_in_place ? reinterpret_cast<A*>(to) + i : buffer;
      const A* x = reinterpret_cast<const A*>(from) + i;
      if (!read_in_place) {
        read(result, from + i * in_size, in_size, m);
        x = result;
      }
      if constexpr (std::is_integral_v<A>) {
        if (!keep) {  // the total of integers is the same in any order
          carry = F::combine(carry, fold_row<F>(x, m));
          continue;
        }
      }
      carry = scan_row<F>(x, result, m, carry);
      if (keep && !write_in_place) {
        write(to + i * out_size, buffer, sizeof(A), m);
      }
    }
    return carry;
  };

  if (s.inner == 1 && s.n <= tile_rows) {
    const auto block = [&](TurnedRows<A>& turned, int64_t first, int64_t rows) {
      const int64_t ld =
          turned.load(from + first * s.n * in_size, rows, read_in_place ? nullptr : read, in_size);
      for (int64_t r = 1; r < s.n; r++) {
        A* const row = turned.tile() + r * ld;
        for (int64_t c = 0; c < ld; c++) {
          row[c] = F::combine(row[c - ld], row[c]);
        }
      }
      turned.store(to + first * s.n * out_size, rows, write_in_place ? nullptr : write);
    };
    for_transposed_rows<A>(s.outer, s.n, rows_to_transpose<A>(s.n), block);
    return;
  }
  // Integers may be added in any order: one thread needs no totals first.
  const bool at_once = std::is_integral_v<A> && (get_num_threads() == 1 || in_parallel_region());
  if (s.inner == 1 && (s.n <= long_row || at_once)) {
    parallel_for(0, s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; o++) {
        scan_part(o * s.n, (o + 1) * s.n, F::identity(), true);
      }
    });
    return;
  }
  if (s.inner == 1) {
    const int64_t chunks = num_chunks(0, s.n, long_row);
    Scratch<A> start(chunks);
    for (int64_t o = 0; o < s.outer; o++) {
      const int64_t row = o * s.n;
      const auto stop = [&](int64_t c) { return row + std::min((c + 1) * long_row, s.n); };
      parallel_for(0, chunks, 1, [&](int64_t c, int64_t) {
        start[c] = scan_part(row + c * long_row, stop(c), F::identity(), false);
      });
      A carry = F::identity();
      for (int64_t c = 0; c < chunks; c++) {
        const A total = start[c];
        start[c] = carry;
        carry = F::combine(carry, total);
      }
      parallel_for(0, chunks, 1, [&](int64_t c, int64_t) {
        scan_part(row + c * long_row, stop(c), start[c], true);
      });
    }
    return;
  }
  const int64_t tiles = num_chunks(0, s.inner, column_tile);
  parallel_for(0, s.outer * tiles, std::max<int64_t>(1, 16384 / (s.n * column_tile)),
               [&](int64_t begin, int64_t end) {
                 alignas(64) A total[column_tile];
                 alignas(64) A x[column_tile];
                 for (int64_t task = begin; task < end; task++) {
                   const int64_t col = task % tiles * column_tile;
                   const int64_t cols = std::min(column_tile, s.inner - col);
                   std::fill(total, total + cols, F::identity());
                   for (int64_t r = 0; r < s.n; r++) {
                     const int64_t at = (task / tiles * s.n + r) * s.inner + col;
                     read(x, from + at * in_size, in_size, cols);
                     for (int64_t c = 0; c < cols; c++) {
                       total[c] = F::combine(total[c], x[c]);
                     }
                     write(to + at * out_size, total, sizeof(A), cols);
                   }
                 }
               });
}

// `Set`: the dtypes of the result.
template <template <class> class F, uint32_t Set>
void scan_by(const char* name, InputList outs, const Tensor& self, int64_t dim) {
  visit_dtype<Set>(name, outs[0]->dtype(), [&](auto tag) {
    using T = typename fold::computed_in<typename decltype(tag)::type, fold::Over::Result>::type;
    constexpr bool wider = F<float>::widens && std::is_same_v<typename decltype(tag)::type, float>;
    scan<F<std::conditional_t<wider, double, T>>>(*outs[0], self, dim, name);
  });
}

}  // namespace rushlight::cpu::RL_ISA
