// The list of ways to multiply matrices (cpu/gemm.h) and the cut into pieces above all of them. A
// new way is a function in `candidates`: it refuses with a reason, or does the job.
#include "cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <rushlight/batch_invariant.h>
#include "core/parallel.h"
#include "cpu/candidates.h"
#include "cpu/gemm_kernels.h"
#include "cpu/onednn.h"
#include "cpu/scratch.h"

namespace rushlight::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- pieces ----

// Multiplications that are worth a thread's while, some five microseconds, and pieces that keep
// many threads busy. The problem alone says how it is cut, not the number of threads.
constexpr int64_t least_work = int64_t{1} << 19;
// oneDNN multiplies 16-bit numbers several times as fast, and packs the factors of every piece.
constexpr int64_t least_work_16_bit = 8 * least_work;
constexpr int64_t enough_pieces = 64;

// Rows that `rows` takes.
constexpr int64_t few_rows = 4;

// Of one matrix, in multiplications: reading a factor and writing the result cost some, too.
int64_t work_estimate(const Gemm& g) {
  return std::max(
      {int64_t{1}, g.m * g.n * std::max<int64_t>(g.k, 16), 8 * std::max(g.m, g.n) * g.k});
}

// Rows and columns of a tile.
struct Tile {
  int64_t rows;
  int64_t columns;
};

// Tiles of whole units, at most `largest`: halved while there are few of them and they are worth
// it.
Tile choose_tile(const Gemm& g, Tile unit, Tile largest, int64_t least,
                 int64_t pieces = enough_pieces) {
  const Tile units = {ceil_div(g.m, unit.rows), ceil_div(g.n, unit.columns)};
  const auto fit = [](int64_t all, int64_t most) { return ceil_div(all, ceil_div(all, most)); };
  Tile tile = {fit(units.rows, largest.rows / unit.rows),
               fit(units.columns, largest.columns / unit.columns)};
  const int64_t work = work_estimate(g);
  while (tile.rows > 1 || tile.columns > 1) {
    const int64_t tiles = ceil_div(units.rows, tile.rows) * ceil_div(units.columns, tile.columns);
    if (g.batch * tiles >= pieces || work / tiles < 2 * least) {
      break;
    }
    const bool tall = tile.rows * unit.rows >= tile.columns * unit.columns;
    int64_t& side = tile.columns == 1 || (tall && tile.rows > 1) ? tile.rows : tile.columns;
    side = ceil_div(side, 2);
  }
  return {tile.rows * unit.rows, tile.columns * unit.columns};
}

// An element of one of the matrices of g.
void* address(const Matrices& x, const Gemm& g, int64_t batch, int64_t row, int64_t col) {
  const int64_t place =
      batch / g.inner * x.outer + batch % g.inner * x.batch + row * x.row + col * x.col;
  return static_cast<char*>(x.data) + place * itemsize(g.dtype);
}

// Lets a part of g begin at a row and column of one matrix of the batch.
void set_operands(Gemm& part, const Gemm& g, int64_t batch, int64_t row, int64_t col) {
  part.a.data = address(g.a, g, batch, row, 0);
  part.b.data = address(g.b, g, batch, 0, col);
  part.c.data = address(g.c, g, batch, row, col);
}

// The bias from a row and a column on.
GemmBias bias_from(const Gemm& g, int64_t row, int64_t col) {
  GemmBias bias = g.bias;
  if (bias) {
    bias.data = bias.at<char>(row * itemsize(g.dtype), col * itemsize(g.dtype));
  }
  return bias;
}

// The bias becomes what c holds before the sum.
void put_bias(Gemm& g) {
  visit_dtype<set_all>("matmul", g.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < g.batch * g.m; i++) {
      T* const to = static_cast<T*>(address(g.c, g, i / g.m, i % g.m, 0));
      const T* const from = g.bias.at<T>(i % g.m, 0);
      if (g.bias.col == 0) {
        std::fill_n(to, g.n, *from);
      } else {
        std::copy_n(from, g.n, to);
      }
    }
  });
  g.bias = {};
  g.beta = 1;
}

// Calls f(tile, first row, first column) for every tile, in parallel.
template <class F>
void for_tiles(const Gemm& g, const F& f, Tile unit = {4, 16},
               Tile largest = {INT64_MAX, INT64_MAX}, int64_t least = least_work,
               int64_t pieces = enough_pieces) {
  const Tile tile = choose_tile(g, unit, largest, least, pieces);
  const int64_t rows = ceil_div(g.m, tile.rows);
  const int64_t columns = ceil_div(g.n, tile.columns);
  const int64_t grain = std::max<int64_t>(1, least * rows * columns / work_estimate(g));
  parallel_for(0, g.batch * rows * columns, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      const int64_t i = t / columns % rows * tile.rows;
      const int64_t j = t % columns * tile.columns;
      Gemm part = g;
      part.batch = 1;
      part.m = std::min(tile.rows, g.m - i);
      part.n = std::min(tile.columns, g.n - j);
      set_operands(part, g, t / (rows * columns), i, j);
      part.bias = bias_from(g, i, j);
      f(part, i, j);
    }
  });
}

// Calls f(whole matrices of a batch with one stride), in parallel.
template <class F>
void for_batches(const Gemm& g, const F& f) {
  parallel_for(0, g.batch, std::max<int64_t>(1, least_work / work_estimate(g)),
               [&](int64_t begin, int64_t end) {
                 const int64_t step = g.inner < g.batch ? 1 : end - begin;
                 Gemm part = g;
                 part.batch = step;
                 for (int64_t i = begin; i < end; i += step) {
                   set_operands(part, g, i, 0, 0);
                   f(part);
                 }
               });
}

// c' = b' @ a'
Gemm transpose_problem(const Gemm& g) {
  Gemm t = g;
  std::swap(t.m, t.n);
  std::swap(t.a, t.b);
  std::swap(t.bias.row, t.bias.col);
  for (Matrices* x : {&t.a, &t.b, &t.c}) {
    std::swap(x->row, x->col);
  }
  return t;
}

// ---- the candidates ----

// One sum of each matrix, along contiguous memory.
bool is_batch_of_sums(const Gemm& g) {
  return g.m == 1 && g.n == 1 && g.a.col == 1 && g.b.row == 1 && !g.bias;
}

const char* run_tiny(const Gemm& g) {
  if (!contains(set_floats, g.dtype)) {
    return "not float32 or float64";
  }
  if (g.m > tiny_limit || g.n > tiny_limit || g.k > tiny_limit) {
    return "too large";
  }
  if (g.bias) {
    return "a bias";
  }
  if (is_batch_of_sums(g)) {
    return "sums of neighbouring matrices";
  }
  for_batches(g, [](const Gemm& part) { small_gemm_kernels().tiny(part); });
  return nullptr;
}

// The part of the lanes of panels that so many rows use; half a panel takes two thirds of its time.
double lanes_in_use(const Gemm& g, int64_t rows) {
  const auto panel = static_cast<double>(blocked_kernels().block(g, false).columns);
  const double panels = static_cast<double>(rows) / panel;
  const double rest = panels - std::floor(panels);
  const double time = std::floor(panels) + (rest == 0 ? 0 : rest <= 0.5 ? 2.0 / 3 : 1);
  return panels / time;
}

// Sums along contiguous memory: a linear layer on few rows, a matrix times a vector.
const char* run_dots(const Gemm& g) {
  if (!contains(set_floating, g.dtype)) {
    return "not a real floating dtype";
  }
  if (g.a.col != 1 || g.b.row != 1) {
    return "not contiguous along the sum";
  }
  // All rows of the factor with fewer are followed for a few of the other: they stay in the
  // second-level cache, and long sums pay for adding up vectors in the end.
  // A large factor would cost more to bring into panels than a few rows more gain by it, most of
  // all one whose rows share few lines of the first-level cache.
  const int64_t few = std::min(g.m, g.n);
  const int64_t least = few <= 8 ? 32 : 256;
  const int64_t large = few * g.k <= int64_t{1} << 18 ? std::max(g.m, g.n) * g.k : 0;
  const int64_t row = g.m < g.n ? g.b.col : g.a.row;
  const bool shares_lines = row * itemsize(g.dtype) % 4096 == 0;
  const int64_t most = large >= int64_t{1} << 21   ? (shares_lines ? 128 : 64)
                       : large >= int64_t{1} << 18 ? 48
                                                   : 24;
  const bool sums = is_batch_of_sums(g);
  if (!sums && (few > most || g.k < least)) {
    return "many rows and columns, or short sums";
  }
  if (few > few_rows && uses_own_gemm(g)) {
    return "the processor multiplies this dtype itself";
  }
  // Rows that fill panels leave the large factor where it is.
  if (!sums && contains(set_floats, g.dtype) && lanes_in_use(g, few) > 0.78) {
    return "few rows fill panels";
  }
  const auto dots = [](const Gemm& tile) { small_gemm_kernels().dots(tile); };
  if (sums) {
    for_batches(g, dots);
  } else {
    for_tiles(g, [&](const Gemm& tile, int64_t, int64_t) { dots(tile); });
  }
  return nullptr;
}

// A complex row times a matrix: its real and its imaginary parts are two rows of real numbers.
template <class T>
void complex_row(const Gemm& g) {
  const Scratch<T> sums(4 * g.n);
  small_gemm_kernels().rows({.dtype = dtype_of_v<T>,
                             .m = 2,
                             .n = 2 * g.n,
                             .k = g.k,
                             .a = {g.a.data, 1, 2 * g.a.col},
                             .b = {g.b.data, 2 * g.b.row, 1},
                             .c = {sums.data(), 2 * g.n, 1}});
  const auto alpha = g.alpha.as<complex<T>>();
  const bool add = g.bias || !g.beta.equal(0);
  auto* const to = static_cast<complex<T>*>(g.c.data);
  for (int64_t j = 0; j < g.n; j++) {
    const T* const by_real = sums + 2 * j;
    const T* const by_imaginary = by_real + 2 * g.n;
    const complex<T> sum = {by_real[0] - by_imaginary[1], by_real[1] + by_imaginary[0]};
    complex<T>& at = to[j * g.c.col];
    const complex<T> before = g.bias ? *g.bias.at<complex<T>>(0, j) : add ? at : complex<T>();
    at = add ? before + alpha * sum : alpha * sum;
  }
}

// A few rows times a matrix, or a matrix times a few columns.
const char* run_rows(const Gemm& g) {
  if (g.dtype == kBool) {
    return "bools";
  }
  const bool across = g.m > g.n;
  const Gemm t = across ? transpose_problem(g) : g;
  const bool complex_numbers = is_complex(g.dtype);
  if (t.m > (complex_numbers ? 1 : few_rows) || t.b.col != 1) {
    return "more than few rows and columns, or not contiguous";
  }
  if (t.n < 8 && t.k > 64) {
    return "long sums of short rows";
  }
  // Stretches of a row that are worth a visit to its page, where there are enough for many threads.
  const int64_t stretch =
      std::clamp<int64_t>(t.n / 256 * 16, 16, std::max<int64_t>(16, 1024 / itemsize(g.dtype)));
  const auto multiply = [&](const Gemm& tile, int64_t, int64_t) {
    if (complex_numbers) {
      g.dtype == kComplexFloat ? complex_row<float>(tile) : complex_row<double>(tile);
    } else {
      small_gemm_kernels().rows(tile);
    }
  };
  for_tiles(t, multiply, {4, stretch});
  return nullptr;
}

const char* run_onednn(const Gemm& g) {
  const char* refusal = onednn::matmul_refusal(g);
  if (refusal == nullptr) {
    const auto multiply = [](Gemm tile, int64_t, int64_t) {
      if (tile.bias) {
        put_bias(tile);
      }
      onednn::matmul(tile);
    };
    for_tiles(g, multiply, {16, 16}, {512, 1024}, least_work_16_bit);
  }
  return refusal;
}

// Bytes of a factor's copy that tiles share.
constexpr int64_t most_copied = int64_t{16} << 20;

// Copies of factors that the tiles of one matrix share, made by all threads. Of B columns are
// copied by and by where it is large.
void multiply_shared(const Gemm& g, bool pairs, const GemmBlock& block, GemmFactors factors,
                     bool copy_b, Tile unit, Tile largest) {
  const bool copy_a =
      !factors.a_in_place && unit.columns < g.n && g.m * block.row_bytes <= most_copied;
  const Scratch<char> a_copy(copy_a ? g.m * block.row_bytes : 0);
  if (copy_a) {
    // Rows that are columns in memory share its lines.
    const int64_t grain = std::max<int64_t>(g.a.row == 1 ? 64 : 1, (1 << 16) / block.row_bytes);
    parallel_for(0, ceil_div(g.m, block.rows), ceil_div(grain, block.rows),
                 [&](int64_t begin, int64_t end) {
                   blocked_kernels().copy_a(g, pairs, begin * block.rows,
                                            std::min(end * block.rows, g.m), a_copy.data());
                 });
    factors.a_copy = a_copy.data();
    factors.rows = g.m;
  }
  const int64_t panel = block.columns * block.column_bytes;
  const int64_t columns =
      copy_b ? std::max(largest.columns, most_copied / panel * block.columns) : g.n;
  const Scratch<char> b_copy(copy_b ? ceil_div(std::min(columns, g.n), block.columns) * panel : 0);
  for (int64_t j = 0; j < g.n; j += columns) {
    Gemm part = g;
    part.n = std::min(columns, g.n - j);
    set_operands(part, g, 0, 0, j);
    part.bias = bias_from(g, 0, j);
    if (copy_b) {
      // The panels of a task share lines and pages of the rows of B.
      const int64_t grain = std::max<int64_t>(4, 128 / block.columns);
      parallel_for(0, ceil_div(part.n, block.columns), grain, [&](int64_t begin, int64_t end) {
        blocked_kernels().copy_b(part, pairs, begin, end, b_copy.data());
      });
      factors.b_copy = b_copy.data();
    }
    for_tiles(
        part,
        [&](const Gemm& tile, int64_t row, int64_t column) {
          GemmFactors here = factors;
          here.first_row = row;
          here.first_column = column;
          blocked_kernels().multiply(tile, pairs, here);
        },
        unit, largest);
  }
}

// A is read in place where its rows, or its columns if these are contiguous, do not share few lines
// of the first-level cache, as those at multiples of a page do, and where no panels are made of its
// columns for many of B. B is read in place where few rows of A share it, or its rows lie close.
void multiply_blocked(const Gemm& g, bool pairs) {
  const GemmBlock block = blocked_kernels().block(g, pairs);
  const int64_t size = itemsize(g.dtype);
  const int64_t a_line = g.a.row == 1 ? g.a.col : g.a.row;
  const bool a_in_place = block.a_in_place && (a_line * size % 4096 != 0 || g.m <= 8) &&
                          !(block.a_in_columns && g.n > 8 * block.columns);
  // Rows of B that cross lines of the cache or lie in many pages cost more than panels of them,
  // unless few rows of A share these: the fewer lines of a row a panel has, the fewer.
  const bool aligned = g.b.row * size % 64 == 0;
  const bool near = g.b.row * size <= 3072 && (aligned || g.k * g.n * size <= 1 << 16);
  const int64_t lines = aligned ? std::max<int64_t>(1, block.columns * size / 64) : 1;
  const int64_t share = near ? 256 : lines * block.rows;
  const bool b_in_place = block.b_in_place && g.m <= share;
  const GemmFactors factors = {.a_in_place = a_in_place, .b_in_place = b_in_place};
  // A step of the sum of these rows of A stays in the second-level cache.
  const Tile largest = {224 / block.rows * block.rows, 8 * block.columns};
  // Where A is copied and large, tiles have all columns: each copies what only it reads, while the
  // next rows come from memory.
  const bool all_columns =
      !a_in_place && g.n <= largest.columns && 2 * g.m >= enough_pieces * block.rows;
  // Where few rows read much of B, a tile has all of them and copies what only it reads.
  const bool all_rows =
      !b_in_place && g.m <= largest.rows && g.n >= 16 * largest.columns && g.batch == 1;
  const Tile unit = {all_rows ? std::max(g.m, block.rows) : block.rows,
                     all_columns ? std::max(g.n, block.columns)
                     : all_rows
                         ? (g.n < 32 * largest.columns ? largest.columns / 2 : largest.columns)
                         : block.columns};
  if (g.batch == 1 && g.k > 0 && work_estimate(g) >= 2 * least_work) {
    const Tile tile = choose_tile(g, unit, largest, least_work);
    const bool rows_share = !b_in_place && tile.rows < g.m;
    const bool columns_share = !a_in_place && tile.columns < g.n;
    if (rows_share || columns_share) {
      multiply_shared(g, pairs, block, factors, rows_share, unit, largest);
      return;
    }
  }
  for_tiles(
      g,
      [&](const Gemm& tile, int64_t, int64_t) { blocked_kernels().multiply(tile, pairs, factors); },
      unit, largest);
}

// Whether the product is better computed as its transpose: what is brought into panels is A then,
// not B, which is read as it lies.
bool is_better_across(const Gemm& g) {
  if (!contains(set_floats, g.dtype) || g.b.row != 1 || g.b.col == 1 || g.a.col != 1 ||
      (g.bias && g.bias.col == 0)) {
    return false;
  }
  // Cycles for each term of the sums: what it takes to bring columns into panels, from a cache or
  // from memory, to bring the result into its order, and to multiply the lanes of a last panel that
  // are no rows of A.
  const double column = g.k * g.n * itemsize(g.dtype) > 4 << 20 ? 1.2 : 0.9;
  const double result = 1.2 * static_cast<double>(g.m * g.n) / static_cast<double>(g.k);
  const int64_t columns = blocked_kernels().block(g, false).columns;
  const int64_t half = columns / 2;
  const int64_t in_vain = ceil_div(g.m, half) * half - g.m;
  return column * static_cast<double>(g.n - g.m) > result + static_cast<double>(in_vain) *
                                                                static_cast<double>(g.n) /
                                                                static_cast<double>(columns);
}

const char* run_pairs(const Gemm& g) {
  if (!blocked_kernels().has_pairs(g.dtype)) {
    return "the processor does not multiply pairs of this dtype";
  }
  multiply_blocked(g, true);
  return nullptr;
}

const char* run_blocked(const Gemm& g) {
  multiply_blocked(is_better_across(g) ? transpose_problem(g) : g, false);
  return nullptr;
}

constexpr Candidate<Gemm> candidates[] = {
    {"tiny", run_tiny},   {"dots", run_dots},     {"rows", run_rows},
    {"pairs", run_pairs}, {"oneDNN", run_onednn}, {"blocked", run_blocked},
};

// ---- any number of rows ----

// c = alpha * sums + bias or beta * c, where the sums may stand in c itself.
template <class T>
void finish_sums(const Gemm& g, const Matrices& sums) {
  const T alpha = g.alpha.as<T>();
  const T beta = g.beta.as<T>();
  Gemm of_sums = g;
  of_sums.c = sums;
  parallel_for(
      0, g.batch * g.m, std::max<int64_t>(1, 16384 / g.n), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++) {
          const int64_t i = row % g.m;
          const T* const from = static_cast<const T*>(address(of_sums.c, of_sums, row / g.m, i, 0));
          T* const to = static_cast<T*>(address(g.c, g, row / g.m, i, 0));
          if (g.bias) {
            const T* const bias = g.bias.at<T>(i, 0);
            for (int64_t j = 0; j < g.n; j++) {
              to[j] = alpha * from[j] + bias[j * g.bias.col];
            }
          } else if (beta == T(0)) {
            for (int64_t j = 0; j < g.n; j++) {
              to[j] = alpha * from[j];
            }
          } else {
            for (int64_t j = 0; j < g.n; j++) {
              to[j] = alpha * from[j] + beta * to[j];
            }
          }
        }
      });
}

// One way for any number of rows or columns: an element's terms are added up one by one, in steps
// that the length of the sum alone gives, whatever tile the element lies in and whichever factor is
// read in place. What else belongs to it follows when its sum is whole.
void multiply_invariant(const Gemm& g) {
  if (!contains(set_floats, g.dtype)) {  // these are rounded when their sums are whole anyway
    multiply_blocked(g, blocked_kernels().has_pairs(g.dtype));
    return;
  }
  Gemm sums = g;
  sums.alpha = 1;
  sums.beta = 0;
  sums.bias = {};
  const bool adds = !g.beta.equal(0);
  const Scratch<char> apart(adds ? g.batch * g.m * g.n * itemsize(g.dtype) : 0);
  if (adds) {
    sums.c = {apart.data(), g.n, 1, g.m * g.n};
    sums.c.outer = g.inner < g.batch ? g.inner * g.m * g.n : 0;
  }
  run_blocked(sums);
  if (adds || g.bias || !g.alpha.equal(1)) {
    g.dtype == kFloat32 ? finish_sums<float>(g, sums.c) : finish_sums<double>(g, sums.c);
  }
}

// ---- long sums of small results ----

// Parts of the sum over k that are computed apart and added in order; 1: none.
int64_t choose_parts(const Gemm& g) {
  if (!contains(set_floats, g.dtype) || g.k < 4096 || g.m * g.n > 128 * 128) {
    return 1;
  }
  return std::min<int64_t>(enough_pieces, g.k / 1024);
}

template <class T>
void add_parts(const Gemm& g, const T* parts, int64_t n) {
  T* c = static_cast<T*>(g.c.data);
  const T alpha = g.alpha.as<T>();
  const T beta = g.beta.as<T>();
  parallel_for(0, g.m, std::max<int64_t>(1, 16384 / (g.n * n)), [&](int64_t begin, int64_t end) {
    const Scratch<T> sums(g.n);
    for (int64_t i = begin; i < end; i++) {
      std::fill_n(sums.data(), g.n, T(0));
      for (int64_t p = 0; p < n; p++) {
        const T* const from = parts + (p * g.m + i) * g.n;
        for (int64_t j = 0; j < g.n; j++) {
          sums[j] += from[j];
        }
      }
      for (int64_t j = 0; j < g.n; j++) {
        T sum = alpha * sums[j];
        if (g.bias) {
          sum += *g.bias.at<T>(i, j);
        }
        T& to = c[i * g.c.row + j * g.c.col];
        to = beta == T(0) ? sum : sum + beta * to;
      }
    }
  });
}

template <class T>
void gemm_split_k(const Gemm& g, int64_t parts) {
  const Scratch<T> results(parts * g.m * g.n);
  Gemm one = g;
  one.alpha = 1;
  one.beta = 0;
  one.bias = {};
  one.inner = INT64_MAX;
  for (int64_t b = 0; b < g.batch; b++) {
    one.a.data = address(g.a, g, b, 0, 0);
    one.b.data = address(g.b, g, b, 0, 0);
    // Equal parts are one batched product; what is left over joins the first one.
    one.batch = parts;
    one.k = g.k / parts;
    one.a.batch = one.k * g.a.col;
    one.b.batch = one.k * g.b.row;
    one.c = {results.data(), g.n, 1, g.m * g.n};
    gemm(one);
    if (g.k % parts != 0) {
      Gemm rest = one;
      rest.batch = 1;
      rest.k = g.k % parts;
      rest.a.data = address(one.a, one, parts, 0, 0);
      rest.b.data = address(one.b, one, parts, 0, 0);
      rest.beta = 1;
      gemm(rest);
    }
    Gemm total = g;
    total.c.data = address(g.c, g, b, 0, 0);
    add_parts<T>(total, results, parts);
  }
}

// ---- layouts ----

// The stride of a dimension of size 1 means nothing: one that libraries like.
void normalize_strides(Matrices& x, int64_t rows, int64_t cols) {
  if (cols == 1) {
    x.col = 1;
  }
  if (rows == 1) {
    x.row = x.col == 1 ? cols : 1;
  }
}

// Copies between c and a contiguous block.
void copy_matrices(const Gemm& g, char* block, bool out) {
  const int64_t size = itemsize(g.dtype);
  for (int64_t b = 0; b < g.batch; b++) {
    for (int64_t i = 0; i < g.m; i++) {
      for (int64_t j = 0; j < g.n; j++, block += size) {
        void* element = address(g.c, g, b, i, j);
        std::memcpy(out ? element : block, out ? block : element, size);
      }
    }
  }
}

// Complex results times beta: the sums then add up with their own arithmetic.
template <class T>
void scale(const Gemm& g) {
  const T beta = g.beta.as<T>();
  for (int64_t b = 0; b < g.batch; b++) {
    for (int64_t i = 0; i < g.m; i++) {
      for (int64_t j = 0; j < g.n; j++) {
        T& x = *static_cast<T*>(address(g.c, g, b, i, j));
        x = beta * x;
      }
    }
  }
}

}  // namespace

bool uses_own_gemm(const Gemm& problem) {
  return blocked_kernels().has_pairs(problem.dtype) || onednn::matmul_refusal(problem) == nullptr;
}

std::string Gemm::describe() const {
  std::string text = str("matmul ", dtype, " ", m, "x", n, "x", k);
  return batch == 1 ? text : str(text, ", batch ", batch);
}

bool bytes_gemm(const Gemm& problem, ScalarType a) {
  Gemm g = problem;
  normalize_strides(g.a, g.m, g.k);
  normalize_strides(g.b, g.k, g.n);
  normalize_strides(g.c, g.m, g.n);
  if (g.c.col != 1 || onednn::matmul_bytes_refusal(g) != nullptr) {
    return false;
  }
  const auto multiply = [&](Gemm tile, int64_t row, int64_t column) {
    tile.a.data = static_cast<char*>(g.a.data) + row * g.a.row;
    tile.b.data = static_cast<char*>(g.b.data) + column * g.b.col;
    onednn::matmul_bytes(tile, a);
  };
  // Sums of integers are the same however they are cut, so that a thread may take one large tile.
  for_tiles(g, multiply, {16, 16}, {INT64_MAX, INT64_MAX}, least_work_16_bit, get_num_threads());
  return true;
}

void gemm(const Gemm& problem) {
  Gemm g = problem;
  if (g.batch == 0 || g.m == 0 || g.n == 0) {
    return;
  }
  normalize_strides(g.a, g.m, g.k);
  normalize_strides(g.b, g.k, g.n);
  normalize_strides(g.c, g.m, g.n);
  if (g.c.col != 1) {
    if (g.c.row == 1) {
      gemm(transpose_problem(g));
      return;
    }
    const Scratch<char> block(g.batch * g.m * g.n * itemsize(g.dtype));
    if (!g.beta.equal(0)) {
      copy_matrices(g, block, false);
    }
    Gemm dense = g;
    dense.c = {block.data(), g.n, 1, g.m * g.n};
    dense.c.outer = g.inner < g.batch ? g.inner * g.m * g.n : 0;
    gemm(dense);
    copy_matrices(g, block, true);
    return;
  }
  if (is_complex(g.dtype) && !g.beta.equal(0) && !g.beta.equal(1)) {
    g.dtype == kComplexFloat ? scale<complex<float>>(g) : scale<complex<double>>(g);
    g.beta = 1;
  }
  if (is_complex(g.dtype) && g.bias && g.bias.col == 0) {  // no one number is added to a row
    put_bias(g);
  }
  if (is_batch_invariant() && contains(set_floating, g.dtype)) {
    multiply_invariant(g);
    return;
  }
  const int64_t parts = choose_parts(g);
  if (parts > 1) {
    g.dtype == kFloat32 ? gemm_split_k<float>(g, parts) : gemm_split_k<double>(g, parts);
    return;
  }
  run_first(candidates, g);
}

}  // namespace rushlight::cpu
