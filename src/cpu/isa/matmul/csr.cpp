// A sparse matrix by rows times a dense one. A row of the result is written by one thread, its
// terms in their order, so bits do not depend on the number of threads.
#include "cpu/csr.h"

#include <algorithm>

#include "core/parallel.h"

namespace rushlight::cpu::RL_ISA {

namespace {

constexpr int64_t lanes = 64;  // columns whose sums stay in registers

template <class T, class C>
void add_terms(C* sums, const int64_t* columns, const T* values, int64_t count, const T* dense,
               int64_t width, int64_t n) {
  for (int64_t e = 0; e < count; e++) {
    const C factor = static_cast<C>(values[e]);
    const T* const row = dense + columns[e] * width;
    for (int64_t k = 0; k < n; k++) {
      sums[k] += factor * static_cast<C>(row[k]);
    }
  }
}

template <class T>
void multiply_rows(const int64_t* starts, const int64_t* columns, const T* values, const T* dense,
                   int64_t width, T* out, int64_t begin, int64_t end) {
  using C = compute_t<T>;
  for (int64_t r = begin; r < end; r++) {
    const int64_t first = starts[r];
    const int64_t count = starts[r + 1] - first;
    for (int64_t j = 0; j < width; j += lanes) {
      C sums[lanes] = {};
      const int64_t n = std::min(lanes, width - j);
      if (n == lanes) {
        add_terms<T, C>(sums, columns + first, values + first, count, dense + j, width, lanes);
      } else {
        add_terms<T, C>(sums, columns + first, values + first, count, dense + j, width, n);
      }
      for (int64_t k = 0; k < n; k++) {
        out[r * width + j + k] = static_cast<T>(sums[k]);
      }
    }
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
        multiply_rows<T>(s, columns.data<int64_t>(), values.data<T>(), dense.data<T>(), width,
                         out.data<T>(), cut(p), cut(p + 1));
      }
    });
  });
}

}  // namespace

const CsrKernels csr_kernels = {multiply};

}  // namespace rushlight::cpu::RL_ISA
