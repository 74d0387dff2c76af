// A sparse matrix by rows times a dense one, and the way back for a triangular one. A row of the
// product, or a column of the solution, is written by one thread, its terms in their order, so bits
// do not depend on the number of threads.
#include "cpu/csr.h"

#include <algorithm>

#include "core/parallel.h"

namespace rushlight::cpu::RL_ISA {

namespace {

constexpr int64_t ahead = 12;  // entries between a row's prefetch and its use
constexpr int64_t line = 64;   // bytes of a cache line

// Adds the terms of `n` columns, whose sums stay in registers. The rows of `dense` that entries
// name lie anywhere in it, so what the next entries want is fetched in advance, over the ends of
// rows.
template <int64_t n, class T>
void multiply_columns(const int64_t* starts, const int64_t* columns, const T* values,
                      const T* dense, int64_t width, T* out, int64_t begin, int64_t end,
                      int64_t entries) {
  using C = compute_t<T>;
  for (int64_t r = begin; r < end; r++) {
    C sums[n] = {};
    for (int64_t e = starts[r]; e < starts[r + 1]; e++) {
      const auto* const next =
          reinterpret_cast<const char*>(dense + columns[std::min(e + ahead, entries - 1)] * width);
      for (int64_t byte = 0; byte < n * static_cast<int64_t>(sizeof(T)); byte += line) {
        __builtin_prefetch(next + byte);
      }
      const C factor = static_cast<C>(values[e]);
      const T* const row = dense + columns[e] * width;
      for (int64_t k = 0; k < n; k++) {
        sums[k] += factor * static_cast<C>(row[k]);
      }
    }
    for (int64_t k = 0; k < n; k++) {
      out[r * width + k] = static_cast<T>(sums[k]);
    }
  }
}

// Columns from `first` on, in blocks of `n`, the rest in narrower ones.
template <int64_t n, class T>
void multiply_rows(const int64_t* starts, const int64_t* columns, const T* values, const T* dense,
                   int64_t width, T* out, int64_t begin, int64_t end, int64_t entries,
                   int64_t first) {
  for (; first + n <= width; first += n) {
    multiply_columns<n, T>(starts, columns, values, dense + first, width, out + first, begin, end,
                           entries);
  }
  if constexpr (n > 1) {
    multiply_rows<n / 4, T>(starts, columns, values, dense, width, out, begin, end, entries, first);
  }
}

// Pieces have about as many entries each, and are cut between rows.
void multiply(const Tensor& out, const Tensor& starts, const Tensor& columns, const Tensor& values,
              const Tensor& dense) {
  const int64_t rows = out.sizes()[0];
  const int64_t width = out.sizes()[1];
  const int64_t entries = columns.numel();
  const int64_t work = (entries + rows) * std::max<int64_t>(width, 1);
  const int64_t pieces = std::clamp<int64_t>(work / 65536, 1, 256);
  const auto* const s = starts.data<int64_t>();
  const auto cut = [&](int64_t piece) {
    return piece == 0        ? 0
           : piece == pieces ? rows
                             : std::lower_bound(s, s + rows, entries * piece / pieces) - s;
  };
  visit_dtype<set_numbers>("mm", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        multiply_rows<64, T>(s, columns.data<int64_t>(), values.data<T>(), dense.data<T>(), width,
                             out.data<T>(), cut(p), cut(p + 1), entries, 0);
      }
    });
  });
}

// Some columns of `x`: a row is ready once what its entries multiply has been subtracted, so rows
// follow from the first on, or from the last.
template <class T>
void solve_columns(const int64_t* starts, const int64_t* columns, const T* values, int64_t rows,
                   T* x, int64_t width, int64_t begin, int64_t end, bool upper, bool unit) {
  for (int64_t i = 0; i < rows; i++) {
    const int64_t r = upper ? rows - 1 - i : i;
    T* const row = x + r * width;
    T diagonal = T(0);
    for (int64_t e = starts[r]; e < starts[r + 1]; e++) {
      const int64_t c = columns[e];
      if (c == r) {
        diagonal += values[e];
      } else if ((c > r) == upper) {
        const T factor = values[e];
        const T* const other = x + c * width;
        for (int64_t k = begin; k < end; k++) {
          row[k] -= factor * other[k];
        }
      }
    }
    for (int64_t k = begin; k < end && !unit; k++) {
      row[k] = row[k] / diagonal;
    }
  }
}

void solve(const Tensor& x, const Tensor& starts, const Tensor& columns, const Tensor& values,
           bool upper, bool unit) {
  visit_dtype<set_floats | set_complexes>("triangular_solve", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t width = x.sizes()[1];
    parallel_for(0, width, 16, [&](int64_t begin, int64_t end) {
      solve_columns<T>(starts.data<int64_t>(), columns.data<int64_t>(), values.data<T>(),
                       x.sizes()[0], x.data<T>(), width, begin, end, upper, unit);
    });
  });
}

}  // namespace

const CsrKernels csr_kernels = {multiply, solve};

}  // namespace rushlight::cpu::RL_ISA
