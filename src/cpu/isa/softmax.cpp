// softmax, log_softmax and their backward along any dimension. A row is read into the compute type
// once and finished while it is in the cache; along an outer dimension, so is a tile of
// neighbouring columns.
#include <algorithm>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/isa/fold.h"
#include "cpu/scratch.h"
#include "cpu/strip.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

namespace {

inline constexpr int64_t granule =
    16;  // elements are computed in whole vectors wherever they stand

// y = exp(x - shift); returns the sum.
template <class A>
A exp_row(const A* x, A* y, int64_t n, A shift) {
  A total = 0;
  for (int64_t i = 0; i < n; i += row_leaf) {
    const int64_t m = std::min(row_leaf, n - i);
    const int64_t whole = m & -granule;
    for (int64_t j = 0; j < whole; j++) {
      y[i + j] = math::exp(x[i + j] - shift);
    }
    if (whole < m) {
      alignas(64) A tail[granule] = {};
      for (int64_t j = whole; j < m; j++) {
        tail[j - whole] = x[i + j] - shift;
      }
      for (int64_t j = 0; j < granule; j++) {
        tail[j] = math::exp(tail[j]);
      }
      std::copy(tail, tail + (m - whole), y + i + whole);
    }
    total += fold_row<fold::Sum<A>>(y + i, m);
  }
  return total;
}

// The sum of exp(x - shift) alone.
template <class A>
A sum_exp(const A* x, int64_t n, A shift) {
  alignas(64) A y[row_leaf];
  A total = 0;
  for (int64_t i = 0; i < n; i += row_leaf) {
    total += exp_row(x + i, y, std::min(row_leaf, n - i), shift);
  }
  return total;
}

template <bool Log, class A>
void softmax_row(const A* x, A* y, int64_t n) {
  const A top = fold_row<fold::Max<A>>(x, n);
  if constexpr (Log) {
    const A log_sum = math::log(sum_exp(x, n, top));
    for (int64_t i = 0; i < n; i++) {
      y[i] = (x[i] - top) - log_sum;
    }
  } else {
    const A scale = 1 / exp_row(x, y, n, top);
    for (int64_t i = 0; i < n; i++) {
      y[i] *= scale;
    }
  }
}

// In place on a tile of n rows of `cols` elements; `top` and `sum` have room for cols, `spare` for
// cols rounded up to the granule.
template <bool Log, class A>
void softmax_tile(A* __restrict x, int64_t n, int64_t cols, A* __restrict top, A* __restrict sum,
                  A* __restrict spare) {
  fold_columns<fold::Max<A>>(x, cols, n, cols, top);
  std::fill(sum, sum + cols, A(0));
  const int64_t whole = (cols + granule - 1) & -granule;
  std::fill(spare, spare + whole, A(0));
  for (int64_t r = 0; r < n; r++) {
    A* row = x + r * cols;
    for (int64_t c = 0; c < cols; c++) {
      spare[c] = row[c] - top[c];
    }
    if constexpr (Log) {
      std::copy(spare, spare + cols, row);
    }
    for (int64_t c = 0; c < whole; c++) {
      spare[c] = math::exp(spare[c]);
    }
    for (int64_t c = 0; c < cols; c++) {
      sum[c] += spare[c];
    }
    if constexpr (!Log) {
      std::copy(spare, spare + cols, row);
    }
  }
  for (int64_t c = 0; c < cols; c++) {
    sum[c] = Log ? math::log(sum[c]) : 1 / sum[c];
  }
  for (int64_t r = 0; r < n; r++) {
    A* row = x + r * cols;
    for (int64_t c = 0; c < cols; c++) {
      row[c] = Log ? row[c] - sum[c] : row[c] * sum[c];
    }
  }
}

// Columns that one task takes: a tile should stay in the second-level cache.
int64_t tile_width(int64_t n, int64_t inner, int64_t bytes) {
  const int64_t fits = (256 << 10) / (n * bytes) & -granule;
  return std::min(inner, std::clamp<int64_t>(fits, granule, 512));
}

template <bool Log>
void softmax_forward(const char* name, const Tensor& out, const Tensor& given, int64_t dim) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor self = contiguous_raw(given);
  const Strip s = strip_of(self, dim);
  visit_dtype<set_floating>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const ConvertRun read = reader<A>(name, self.dtype());
    const ConvertRun write = writer<A, set_floating>(name, out.dtype());
    const bool direct = self.dtype() == dtype_of_v<A> && std::is_same_v<A, T>;
    const int64_t in_size = self.element_size();
    const int64_t out_size = out.element_size();
    const char* from = static_cast<const char*>(self.data_ptr());
    char* to = static_cast<char*>(out.data_ptr());
    if (s.inner == 1) {
      parallel_for(0, s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
        Scratch<A> row(direct ? 0 : s.n);
        for (int64_t o = begin; o < end; o++) {
          if (direct) {
            softmax_row<Log>(reinterpret_cast<const A*>(from) + o * s.n,
                             reinterpret_cast<A*>(to) + o * s.n, s.n);
          } else {
            read(row.data(), from + o * s.n * in_size, in_size, s.n);
            softmax_row<Log>(row.data(), row.data(), s.n);
            write(to + o * s.n * out_size, row.data(), sizeof(A), s.n);
          }
        }
      });
      return;
    }
    const int64_t width = tile_width(s.n, s.inner, sizeof(A));
    const int64_t tiles = num_chunks(0, s.inner, width);
    const int64_t grain = std::max<int64_t>(1, 16384 / (width * s.n));
    parallel_for(0, s.outer * tiles, grain, [&](int64_t begin, int64_t end) {
      Scratch<A> tile(s.n * width);
      Scratch<A> rest(3 * (width + granule));
      for (int64_t task = begin; task < end; task++) {
        const int64_t col = task % tiles * width;
        const int64_t cols = std::min(width, s.inner - col);
        const int64_t first = task / tiles * s.n * s.inner + col;
        for (int64_t r = 0; r < s.n; r++) {
          read(tile.data() + r * cols, from + (first + r * s.inner) * in_size, in_size, cols);
        }
        softmax_tile<Log>(tile.data(), s.n, cols, rest.data(), rest.data() + width + granule,
                          rest.data() + 2 * (width + granule));
        for (int64_t r = 0; r < s.n; r++) {
          write(to + (first + r * s.inner) * out_size, tile.data() + r * cols, sizeof(A), cols);
        }
      }
    });
  });
}

// g becomes the gradient of the input, given that of the output and the output y.
template <bool Log, class A>
void backward_elements(A* __restrict g, const A* __restrict y, int64_t n, A sum) {
  if constexpr (Log) {
    for (int64_t i = 0; i < n; i += granule) {  // y has room for a whole last granule
      alignas(64) A e[granule];
      for (int64_t j = 0; j < granule; j++) {
        e[j] = math::exp(y[i + j]);
      }
      for (int64_t j = 0; j < granule; j++) {
        g[i + j] = g[i + j] - e[j] * sum;
      }
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      g[i] = y[i] * (g[i] - sum);
    }
  }
}

template <bool Log>
void softmax_backward(const char* name, const Tensor& out, const Tensor& given_grad,
                      const Tensor& given_output, int64_t dim) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor grad = contiguous_raw(given_grad);
  const Tensor output = contiguous_raw(given_output);
  const Strip s = strip_of(output, dim);
  visit_dtype<set_floating>(name, output.dtype(), [&](auto tag) {
    using A = compute_t<typename decltype(tag)::type>;
    const ConvertRun read_grad = reader<A, set_floating>(name, grad.dtype());
    const ConvertRun read = reader<A, set_floating>(name, output.dtype());
    const ConvertRun write = writer<A, set_floating>(name, out.dtype());
    const int64_t grad_size = grad.element_size();
    const int64_t in_size = output.element_size();
    const int64_t out_size = out.element_size();
    const char* from_grad = static_cast<const char*>(grad.data_ptr());
    const char* from = static_cast<const char*>(output.data_ptr());
    char* to = static_cast<char*>(out.data_ptr());
    if (s.inner == 1) {
      parallel_for(0, s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
        alignas(64) A g[row_leaf] = {};
        alignas(64) A y[row_leaf] = {};
        for (int64_t o = begin; o < end; o++) {
          A sum = 0;
          for (int64_t i = 0; i < s.n; i += row_leaf) {
            const int64_t m = std::min(row_leaf, s.n - i);
            read_grad(g, from_grad + (o * s.n + i) * grad_size, grad_size, m);
            if constexpr (!Log) {
              read(y, from + (o * s.n + i) * in_size, in_size, m);
              for (int64_t j = 0; j < m; j++) {
                y[j] *= g[j];
              }
            }
            sum += fold_row<fold::Sum<A>>(Log ? g : y, m);
          }
          for (int64_t i = 0; i < s.n; i += row_leaf) {
            const int64_t m = std::min(row_leaf, s.n - i);
            if (s.n > row_leaf) {
              read_grad(g, from_grad + (o * s.n + i) * grad_size, grad_size, m);
            }
            read(y, from + (o * s.n + i) * in_size, in_size, m);
            backward_elements<Log>(g, y, m, sum);
            write(to + (o * s.n + i) * out_size, g, sizeof(A), m);
          }
        }
      });
      return;
    }
    const int64_t width = tile_width(2 * s.n, s.inner, sizeof(A));
    const int64_t tiles = num_chunks(0, s.inner, width);
    const int64_t grain = std::max<int64_t>(1, 16384 / (width * s.n));
    parallel_for(0, s.outer * tiles, grain, [&](int64_t begin, int64_t end) {
      Scratch<A> g(s.n * width + granule);
      Scratch<A> y(s.n * width + granule);
      Scratch<A> sums(width);
      A* const sum = sums.data();
      for (int64_t task = begin; task < end; task++) {
        const int64_t col = task % tiles * width;
        const int64_t cols = std::min(width, s.inner - col);
        const int64_t first = task / tiles * s.n * s.inner + col;
        std::fill(sum, sum + cols, A(0));
        for (int64_t r = 0; r < s.n; r++) {
          A* const g_row = g.data() + r * cols;
          A* const y_row = y.data() + r * cols;
          read_grad(g_row, from_grad + (first + r * s.inner) * grad_size, grad_size, cols);
          read(y_row, from + (first + r * s.inner) * in_size, in_size, cols);
          for (int64_t c = 0; c < cols; c++) {
            sum[c] += Log ? g_row[c] : g_row[c] * y_row[c];
          }
        }
        if constexpr (Log) {  // the last granule may hold anything, but not NaN traps of stale
                              // memory
          std::fill(y.data() + s.n * cols, y.data() + s.n * cols + granule, A(0));
          for (int64_t i = 0; i < s.n * cols; i += granule) {
            for (int64_t j = 0; j < granule; j++) {
              y[i + j] = math::exp(y[i + j]);
            }
          }
        }
        for (int64_t r = 0; r < s.n; r++) {
          A* const g_row = g.data() + r * cols;
          const A* const y_row = y.data() + r * cols;
          for (int64_t c = 0; c < cols; c++) {
            g_row[c] = Log ? g_row[c] - y_row[c] * sum[c] : y_row[c] * (g_row[c] - sum[c]);
          }
          write(to + (first + r * s.inner) * out_size, g_row, sizeof(A), cols);
        }
      }
    });
  });
}

}  // namespace

void softmax(const Tensor& out, const Tensor& self, int64_t dim, std::optional<ScalarType>) {
  softmax_forward<false>("softmax", out, self, dim);
}

void log_softmax(const Tensor& out, const Tensor& self, int64_t dim, std::optional<ScalarType>) {
  softmax_forward<true>("log_softmax", out, self, dim);
}

void _softmax_backward_data(const Tensor& out, const Tensor& grad_output, const Tensor& output,
                            int64_t dim, ScalarType) {
  softmax_backward<false>("softmax_backward", out, grad_output, output, dim);
}

void _log_softmax_backward_data(const Tensor& out, const Tensor& grad_output, const Tensor& output,
                                int64_t dim, ScalarType) {
  softmax_backward<true>("log_softmax_backward", out, grad_output, output, dim);
}

}  // namespace rushlight::cpu::RL_ISA
