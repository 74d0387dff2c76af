// softmax, log_softmax and their backward along any dimension. A row is read into the compute type
// once and finished while it is in the cache; along an outer dimension, so is a tile of
// neighbouring columns, unless it is too long.
#include <algorithm>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/isa/norm/exp_rows.h"
#include "cpu/scratch.h"
#include "cpu/dim_split.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// What exp(x - largest) is shifted by where all may be -inf: the sum is 0 then, not NaN.
template <class A>
RL_INLINE A shift_of(A top) {
  return top == -math::infinity<A> ? A(0) : top;
}

// Two parts of what is summed, each with its largest element, become one.
template <class A>
RL_INLINE void join_sums(A& top, A& sum, A next_top, A next_sum) {
  const A high = fold::Max<A>::combine(top, next_top);
  const A shift = shift_of(high);
  sum = sum * math::exp(top - shift) + next_sum * math::exp(next_top - shift);
  top = high;
}

// Rows that are worked on at once, so that their logarithms are taken together; they stay in the
// first-level cache.
int64_t rows_at_once(int64_t n) { return std::clamp<int64_t>(4096 / n, 1, granule); }

// At most a granule of rows; y may be x.
template <bool Log, class A>
void softmax_of_rows(const A* x, A* y, int64_t n, int64_t rows) {
  alignas(64) A top[granule];
  alignas(64) A sum[granule];
  std::fill(sum, sum + granule, A(1));
  for (int64_t r = 0; r < rows; r++) {
    top[r] = fold_row<fold::Max<A>>(x + r * n, n);
    sum[r] = exp_row<!Log>(x + r * n, y + r * n, n, top[r]);
  }
  for (int64_t r = 0; r < granule; r++) {
    sum[r] = Log ? math::log(sum[r]) : 1 / sum[r];
  }
  for (int64_t r = 0; r < rows; r++) {
    const A* const row = x + r * n;
    A* const to = y + r * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      to[i] = Log ? (row[i] - top[r]) - sum[r] : to[i] * sum[r];
    }
  }
}

// In place on a tile of n rows of `cols` elements, a multiple of the granule; `top` and `sum` have
// room for a row.
template <bool Log, class A>
void softmax_tile(A* __restrict x, int64_t n, int64_t cols, A* __restrict top, A* __restrict sum) {
  fold_columns<fold::Max<A>>(x, cols, n, cols, top);
  std::fill(sum, sum + cols, A(0));
  for (int64_t r = 0; r < n; r++) {
    A* __restrict row = x + r * cols;
    for (int64_t c = 0; c < cols; c++) {
      const A e = math::exp(row[c] - top[c]);
      sum[c] += e;
      row[c] = Log ? row[c] : e;
    }
  }
  for (int64_t c = 0; c < cols; c++) {
    sum[c] = Log ? math::log(sum[c]) : 1 / sum[c];
  }
  for (int64_t r = 0; r < n; r++) {
    A* __restrict row = x + r * cols;
    for (int64_t c = 0; c < cols; c++) {
      row[c] = Log ? (row[c] - top[c]) - sum[c] : row[c] * sum[c];
    }
  }
}

// Columns that one task takes: a tile should stay in the second-level cache.
inline constexpr int64_t tile_cache = 256 << 10;
inline constexpr int64_t narrow = 32;  // with tiles of fewer columns, rows cost more than they hold

int64_t tile_width(int64_t n, int64_t inner, int64_t bytes) {
  const int64_t fits = tile_cache / (n * bytes) & -granule;
  const int64_t fair =
      std::max<int64_t>(64, (inner / 8 + granule - 1) & -granule);  // enough for threads
  return std::min({inner, std::clamp<int64_t>(fits, granule, 512), fair});
}

// The geometry of a softmax and the ways of its elements to and from the type it is computed in.
template <class A>
struct SoftmaxJob {
  DimSplit s;
  ConvertRun read;
  ConvertRun write;
  int64_t in_size;
  int64_t out_size;
  const char* from;
  char* to;
  bool direct;  // memory holds A on both sides

  void read_run(A* x, int64_t at, int64_t n) const { read(x, from + at * in_size, in_size, n); }
  void write_run(int64_t at, const A* y, int64_t n) const {
    write(to + at * out_size, y, sizeof(A), n);
  }
};

template <bool Log, class A>
void softmax_short_rows(const SoftmaxJob<A>& job) {
  const int64_t n = job.s.n;
  const ConvertRun read = job.direct ? nullptr : job.read;
  const ConvertRun write = job.direct ? nullptr : job.write;
  const auto block = [&](TurnedRows<A>& turned, int64_t first, int64_t rows) {
    const int64_t at = first * n;
    const int64_t ld = turned.load(job.from + at * job.in_size, rows, read, job.in_size);
    Scratch<A> rest(2 * ld);
    softmax_tile<Log>(turned.tile(), n, ld, rest.data(), rest.data() + ld);
    turned.store(job.to + at * job.out_size, rows, write);
  };
  for_transposed_rows<A>(job.s.outer, n, rows_to_transpose<A>(n), block);
}

template <bool Log, class A>
void softmax_rows(const SoftmaxJob<A>& job) {
  const int64_t n = job.s.n;
  const int64_t most = rows_at_once(n);
  parallel_for(0, job.s.outer, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
    Scratch<A> buffer(job.direct ? 0 : most * n);
    for (int64_t o = begin; o < end; o += most) {
      const int64_t rows = std::min(most, end - o);
      if (job.direct) {
        softmax_of_rows<Log>(reinterpret_cast<const A*>(job.from) + o * n,
                             reinterpret_cast<A*>(job.to) + o * n, n, rows);
      } else {
        job.read_run(buffer.data(), o * n, rows * n);
        softmax_of_rows<Log>(buffer.data(), buffer.data(), n, rows);
        job.write_run(o * n, buffer.data(), rows * n);
      }
    }
  });
}

// Few long rows: the same by chunks of each, whose largest elements and sums meet before a last
// pass.
inline constexpr int64_t long_row = 1 << 16;
inline constexpr int64_t row_chunk = 1 << 14;

template <bool Log, class A>
void softmax_long_rows(const SoftmaxJob<A>& job) {
  const int64_t n = job.s.n;
  const int64_t chunks = num_chunks(0, n, row_chunk);
  Scratch<A> tops(job.s.outer * chunks);
  Scratch<A> sums(job.s.outer * chunks);
  // Calls f(task, elements, how many, position) with a chunk read into memory that is padded to a
  // granule.
  const auto for_chunks = [&](const auto& f) {
    parallel_for(0, job.s.outer * chunks, 1, [&](int64_t begin, int64_t end) {
      Scratch<A> x(row_chunk);
      for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % chunks * row_chunk;
        const int64_t m = std::min(row_chunk, n - first);
        const int64_t at = task / chunks * n + first;
        job.read_run(x.data(), at, m);
        std::fill(x.data() + m, x.data() + ((m + granule - 1) & -granule), A(0));
        f(task, x.data(), m, at);
      }
    });
  };
  for_chunks([&](int64_t task, const A* x, int64_t m, int64_t) {
    tops[task] = fold_row<fold::Max<A>>(x, m);
    sums[task] = exp_row<false, A>(x, nullptr, m, shift_of(tops[task]));
  });
  for (int64_t o = 0; o < job.s.outer; o++) {
    A* const top = tops.data() + o * chunks;
    A* const sum = sums.data() + o * chunks;
    for (int64_t c = 1; c < chunks; c++) {
      join_sums(top[0], sum[0], top[c], sum[c]);
    }
    sum[0] = Log ? math::log(sum[0]) : 1 / sum[0];
  }
  for_chunks([&](int64_t task, A* x, int64_t m, int64_t at) {
    const A top = tops[task / chunks * chunks];
    const A sum = sums[task / chunks * chunks];
    const int64_t whole = (m + granule - 1) & -granule;
    for (int64_t i = 0; i < whole; i++) {
      x[i] = Log ? (x[i] - top) - sum : math::exp(x[i] - top) * sum;
    }
    job.write_run(at, x, m);
  });
}

template <bool Log, class A>
void softmax_contiguous(const SoftmaxJob<A>& job) {
  if (job.s.n >= long_row && job.s.outer < 16) {
    softmax_long_rows<Log>(job);
  } else if (job.s.n <= short_exp_row) {
    softmax_short_rows<Log>(job);
  } else {
    softmax_rows<Log>(job);
  }
}

template <bool Log, class A>
void softmax_tiles(const SoftmaxJob<A>& job) {
  const DimSplit& s = job.s;
  const int64_t width = tile_width(s.n, s.inner, sizeof(A));
  const int64_t padded = (width + granule - 1) & -granule;
  const int64_t tiles = num_chunks(0, s.inner, width);
  const int64_t grain = std::max<int64_t>(1, 16384 / (width * s.n));
  parallel_for(0, s.outer * tiles, grain, [&](int64_t begin, int64_t end) {
    Scratch<A> tile(s.n * padded);
    Scratch<A> rest(2 * padded);
    std::fill(tile.data(), tile.data() + s.n * padded, A(0));
    for (int64_t task = begin; task < end; task++) {
      const int64_t col = task % tiles * width;
      const int64_t cols = std::min(width, s.inner - col);
      const int64_t first = task / tiles * s.n * s.inner + col;
      for (int64_t r = 0; r < s.n; r++) {
        job.read_run(tile.data() + r * padded, first + r * s.inner, cols);
      }
      softmax_tile<Log>(tile.data(), s.n, padded, rest.data(), rest.data() + padded);
      for (int64_t r = 0; r < s.n; r++) {
        job.write_run(first + r * s.inner, tile.data() + r * padded, cols);
      }
    }
  });
}

// Columns too long for a tile. Whole rows are taken as they lie: a chunk of them that fits the
// cache gives each column's largest element and the sum of exp(x - largest); those of all chunks
// meet, and a last pass computes exp again, which is cheaper than writing it down.
template <bool Log, class A>
class LongColumns {
 public:
  explicit LongColumns(const SoftmaxJob<A>& job)
      : job_(job),
        s_(job.s),
        width_((std::min<int64_t>(s_.inner, 4096) + granule - 1) & -granule),
        tiles_(num_chunks(0, s_.inner, width_)),
        rows_(std::max<int64_t>(16, tile_cache / (width_ * static_cast<int64_t>(sizeof(A))))),
        chunks_(num_chunks(0, s_.n, rows_)),
        tops_(s_.outer * tiles_ * chunks_ * width_),
        sums_(s_.outer * tiles_ * chunks_ * width_) {}

  void run() {
    const int64_t blocks = s_.outer * tiles_;
    parallel_for(0, blocks * chunks_, 1, [&](int64_t begin, int64_t end) {
      Scratch<A> row(width_);
      for (int64_t task = begin; task < end; task++) {
        reduce_task(task, row.data());
      }
    });
    parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; block++) {
        merge(block);
      }
    });
    parallel_for(0, blocks * chunks_, 1, [&](int64_t begin, int64_t end) {
      Scratch<A> row(width_);
      for (int64_t task = begin; task < end; task++) {
        finish(task, row.data());
      }
    });
  }

 private:
  // Calls f(position of the row's first element, columns) for the rows of a chunk.
  template <class F>
  void for_rows(int64_t task, const F& f) const {
    const int64_t block = task / chunks_;
    const int64_t col = block % tiles_ * width_;
    const int64_t first = task % chunks_ * rows_;
    for (int64_t r = first; r < std::min(first + rows_, s_.n); r++) {
      f((block / tiles_ * s_.n + r) * s_.inner + col, std::min(width_, s_.inner - col));
    }
  }

  void reduce_task(int64_t task, A* __restrict row) {
    A* __restrict top = tops_.data() + task * width_;
    A* __restrict sum = sums_.data() + task * width_;
    std::fill(top, top + width_, -math::infinity<A>);
    std::fill(sum, sum + width_, A(0));
    std::fill(row, row + width_, A(0));
    for_rows(task, [&](int64_t at, int64_t cols) {
      job_.read_run(row, at, cols);
      for (int64_t c = 0; c < width_; c++) {
        top[c] = fold::Max<A>::combine(top[c], row[c]);
      }
    });
    for_rows(task, [&](int64_t at, int64_t cols) {
      job_.read_run(row, at, cols);
      for (int64_t c = 0; c < width_; c++) {
        sum[c] += math::exp(row[c] - shift_of(top[c]));
      }
    });
  }

  // The totals of a block of columns, in place of its first chunk's.
  void merge(int64_t block) {
    A* __restrict top = tops_.data() + block * chunks_ * width_;
    A* __restrict sum = sums_.data() + block * chunks_ * width_;
    for (int64_t chunk = 1; chunk < chunks_; chunk++) {
      const A* __restrict next_top = top + chunk * width_;
      const A* __restrict next_sum = sum + chunk * width_;
      for (int64_t c = 0; c < width_; c++) {
        join_sums(top[c], sum[c], next_top[c], next_sum[c]);
      }
    }
    for (int64_t c = 0; c < width_; c++) {
      sum[c] = Log ? math::log(sum[c]) : 1 / sum[c];
    }
  }

  void finish(int64_t task, A* __restrict row) const {
    const int64_t block = task / chunks_;
    const A* __restrict top = tops_.data() + block * chunks_ * width_;
    const A* __restrict sum = sums_.data() + block * chunks_ * width_;
    std::fill(row, row + width_, A(0));
    for_rows(task, [&](int64_t at, int64_t cols) {
      job_.read_run(row, at, cols);
      for (int64_t c = 0; c < width_; c++) {
        const A x = row[c] - top[c];
        row[c] = Log ? x - sum[c] : math::exp(x) * sum[c];
      }
      job_.write_run(at, row, cols);
    });
  }

  const SoftmaxJob<A>& job_;
  const DimSplit& s_;
  const int64_t width_;  // columns that are taken together, padded
  const int64_t tiles_;
  const int64_t rows_;  // of a chunk
  const int64_t chunks_;
  Scratch<A> tops_;  // [outer][tile][chunk][width]
  Scratch<A> sums_;
};

// Few columns are turned into rows and back, in copies: of what the second-level cache holds.

template <bool Log, class A>
void softmax_few_columns(const SoftmaxJob<A>& job) {
  const auto [outer, n, inner] = job.s;
  const int64_t all = n * inner;
  Scratch<char> rows(outer * all * job.in_size);
  Scratch<char> results(outer * all * job.out_size);
  for (int64_t o = 0; o < outer; o++) {
    transpose(rows.data() + o * all * job.in_size, n * job.in_size,
              job.from + o * all * job.in_size, inner * job.in_size, job.in_size, inner, n);
  }
  SoftmaxJob<A> turned = job;
  turned.s = {outer * inner, n, 1};
  turned.from = rows.data();
  turned.to = results.data();
  softmax_contiguous<Log>(turned);
  for (int64_t o = 0; o < outer; o++) {
    transpose(job.to + o * all * job.out_size, inner * job.out_size,
              results.data() + o * all * job.out_size, n * job.out_size, job.out_size, n, inner);
  }
}

template <bool Log>
void softmax_forward(const char* name, const Tensor& out, const Tensor& given, int64_t dim) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor self = contiguous_raw(given);
  visit_dtype<set_floating>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const SoftmaxJob<A> job{dim_split_of(self, dim),
                            reader<A>(name, self.dtype()),
                            writer<A, set_floating>(name, out.dtype()),
                            self.element_size(),
                            out.element_size(),
                            static_cast<const char*>(self.data_ptr()),
                            static_cast<char*>(out.data_ptr()),
                            self.dtype() == dtype_of_v<A> && std::is_same_v<A, T>};
    if (job.s.inner == 1) {
      softmax_contiguous<Log>(job);
    } else if (job.s.inner < few_columns && job.s.n > short_exp_row &&
               self.numel() * static_cast<int64_t>(sizeof(A)) <= 4 * tile_cache) {
      softmax_few_columns<Log>(job);
    } else if (job.s.n * static_cast<int64_t>(sizeof(A)) * narrow <= tile_cache) {
      softmax_tiles<Log>(job);
    } else {
      LongColumns<Log, A>(job).run();
    }
  });
}

// out = the gradient of a row's input, given that of its output and the output y. The sum that all
// elements share adds up in lanes, as in exp_row.
template <bool Log, class A>
void backward_row(const A* g, const A* y, A* out, int64_t n) {
  constexpr int64_t lanes = lane_bytes / static_cast<int64_t>(sizeof(A));
  A sum = 0;
  for (int64_t leaf = 0; leaf < n; leaf += row_leaf) {
    const int64_t end = std::min(leaf + row_leaf, n);
    alignas(64) A sums[lanes] = {};
    int64_t i = leaf;
    for (; i + lanes <= end; i += lanes) {
      for (int64_t j = 0; j < lanes; j++) {
        sums[j] += Log ? g[i + j] : g[i + j] * y[i + j];
      }
    }
    for (int64_t j = 0; i + j < end; j++) {
      sums[j] += Log ? g[i + j] : g[i + j] * y[i + j];
    }
    sum += fold_row<fold::Sum<A>>(sums, lanes);
  }
  if constexpr (Log) {
    const int64_t whole = n & -granule;
#pragma GCC ivdep
    for (int64_t i = 0; i < whole; i++) {
      out[i] = g[i] - math::exp(y[i]) * sum;
    }
    if (whole == n) {
      return;
    }
    alignas(64) A tail[granule];
    load_granule(tail, y + whole, n - whole);
    for (int64_t j = 0; j < granule; j++) {
      tail[j] = math::exp(tail[j]) * sum;
    }
    for (int64_t j = 0; j < n - whole; j++) {
      out[whole + j] = g[whole + j] - tail[j];
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      out[i] = y[i] * (g[i] - sum);
    }
  }
}

// The same in place on g, for a tile of n rows of `cols` elements, a multiple of the granule.
template <bool Log, class A>
void backward_tile(A* __restrict g, const A* __restrict y, int64_t n, int64_t cols,
                   A* __restrict sum) {
  std::fill(sum, sum + cols, A(0));
  for (int64_t r = 0; r < n; r++) {
    for (int64_t c = r * cols, k = 0; k < cols; c++, k++) {
      sum[k] += Log ? g[c] : g[c] * y[c];
    }
  }
  for (int64_t r = 0; r < n; r++) {
    for (int64_t c = r * cols, k = 0; k < cols; c++, k++) {
      g[c] = Log ? g[c] - math::exp(y[c]) * sum[k] : y[c] * (g[c] - sum[k]);
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
  const DimSplit s = dim_split_of(output, dim);
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
    const auto is_direct = [](const Tensor& t) { return t.dtype() == dtype_of_v<A>; };
    if (s.inner == 1 && s.n <= short_exp_row) {
      const ConvertRun read_g = is_direct(grad) ? nullptr : read_grad;
      const ConvertRun read_y = is_direct(output) ? nullptr : read;
      const auto block = [&](TurnedRows<A>& g, int64_t first, int64_t rows) {
        const int64_t at = first * s.n;
        TurnedRows<A> y(s.n, rows);
        g.load(from_grad + at * grad_size, rows, read_g, grad_size);
        const int64_t ld = y.load(from + at * in_size, rows, read_y, in_size);
        Scratch<A> sums(ld);
        backward_tile<Log>(g.tile(), y.tile(), s.n, ld, sums.data());
        g.store(to + at * out_size, rows, is_direct(out) ? nullptr : write);
      };
      for_transposed_rows<A>(s.outer, s.n, rows_to_transpose<A>(2 * s.n), block);
      return;
    }
    if (s.inner == 1 && is_direct(grad) && is_direct(output) && is_direct(out)) {
      parallel_for(0, s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
        for (int64_t at = begin * s.n; at < end * s.n; at += s.n) {
          backward_row<Log>(grad.data<A>() + at, output.data<A>() + at, out.data<A>() + at, s.n);
        }
      });
      return;
    }
    if (s.inner == 1) {
      parallel_for(0, s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
        Scratch<A> g(s.n);
        Scratch<A> y(s.n);
        for (int64_t at = begin * s.n; at < end * s.n; at += s.n) {
          read_grad(g.data(), from_grad + at * grad_size, grad_size, s.n);
          read(y.data(), from + at * in_size, in_size, s.n);
          backward_row<Log>(g.data(), y.data(), g.data(), s.n);
          write(to + at * out_size, g.data(), sizeof(A), s.n);
        }
      });
      return;
    }
    const int64_t width = tile_width(2 * s.n, s.inner, sizeof(A));
    const int64_t padded = round_up_to_granule(width);
    const int64_t tiles = num_chunks(0, s.inner, width);
    const int64_t grain = std::max<int64_t>(1, 16384 / (width * s.n));
    parallel_for(0, s.outer * tiles, grain, [&](int64_t begin, int64_t end) {
      Scratch<A> g(s.n * padded);
      Scratch<A> y(s.n * padded);
      Scratch<A> sums(padded);
      std::fill(g.data(), g.data() + s.n * padded, A(0));
      std::fill(y.data(), y.data() + s.n * padded, A(0));
      for (int64_t task = begin; task < end; task++) {
        const int64_t col = task % tiles * width;
        const int64_t cols = std::min(width, s.inner - col);
        const int64_t first = task / tiles * s.n * s.inner + col;
        for (int64_t r = 0; r < s.n; r++) {
          const int64_t at = first + r * s.inner;
          read_grad(g.data() + r * padded, from_grad + at * grad_size, grad_size, cols);
          read(y.data() + r * padded, from + at * in_size, in_size, cols);
        }
        backward_tile<Log>(g.data(), y.data(), s.n, padded, sums.data());
        for (int64_t r = 0; r < s.n; r++) {
          write(to + (first + r * s.inner) * out_size, g.data() + r * padded, sizeof(A), cols);
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
