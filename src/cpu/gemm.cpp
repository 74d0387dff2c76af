// The list of ways to multiply matrices (cpu/gemm.h), the cut into tiles above all of them, and the
// reference. A new way is a function in `candidates`: it refuses with a reason, or does the job
// through for_tiles.
#include "cpu/gemm.h"

#include <algorithm>

#include "core/parallel.h"
#include "kernels/read_element.h"
#include "cpu/blas.h"
#include "cpu/candidates.h"
#include "cpu/gemm_kernels.h"
#include "cpu/onednn.h"
#include "cpu/scratch.h"

namespace rushlight::cpu {
namespace {

// ---- tiles ----

// Multiplications that are worth a thread's while: some ten microseconds.
constexpr int64_t least_work = int64_t{1} << 20;
// Large tiles: libraries bring both factors into panels for each.
constexpr int64_t tile_side = 512;
constexpr int64_t fewest_tiles = 8;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Side of `parts` nearly equal pieces of n, a multiple of 16.
int64_t piece(int64_t n, int64_t parts) {
  return std::min(n, ceil_div(ceil_div(n, parts), 16) * 16);
}

struct Tiles {
  int64_t batch = 1;
  int64_t m;
  int64_t n;
};

// Depends on the problem alone.
Tiles choose_tiles(const Gemm& g) {
  // Writing an element of the result costs as much as some multiplications.
  const int64_t work = std::max<int64_t>(1, g.m * g.n * std::max<int64_t>(g.k, 16));
  if (work < 2 * least_work) {
    return {std::max<int64_t>(1, least_work / work), g.m, g.n};
  }
  int64_t rows = ceil_div(g.m, tile_side);
  // Products of 16-bit floats take twice as fast what costs as much to bring into panels: that of
  // the second factor is shared by whole rows, where these are not too long.
  const bool wide = contains(set_reduced, g.dtype);
  int64_t columns = wide && g.n <= 2 * tile_side ? 1 : ceil_div(g.n, tile_side);
  // Few tiles keep many threads idle: cut further while the pieces stay worthwhile.
  while (g.batch * rows * columns < fewest_tiles && work / (rows * columns) >= 2 * least_work) {
    if (wide && piece(g.m, rows) > 128) {
      rows *= 2;
    } else if (wide && g.m >= 128) {
      break;
    } else if (piece(g.m, rows) >= piece(g.n, columns) && piece(g.m, rows) >= 32) {
      rows *= 2;
    } else if (piece(g.n, columns) >= 32) {
      columns *= 2;
    } else {
      break;
    }
  }
  return {1, piece(g.m, rows), piece(g.n, columns)};
}

// An element of one of the matrices of g.
void* address(const Matrices& x, const Gemm& g, int64_t batch, int64_t row, int64_t col) {
  const int64_t place =
      batch / g.inner * x.outer + batch % g.inner * x.batch + row * x.row + col * x.col;
  return static_cast<char*>(x.data) + place * itemsize(g.dtype);
}

// Lets a part of g begin at a row and column of one matrix of the batch.
void place(Gemm& part, const Gemm& g, int64_t batch, int64_t row, int64_t col) {
  part.a.data = address(g.a, g, batch, row, 0);
  part.b.data = address(g.b, g, batch, 0, col);
  part.c.data = address(g.c, g, batch, row, col);
}

// The bias becomes what c holds before the sum.
void put_bias(Gemm& tile) {
  const int64_t size = itemsize(tile.dtype);
  for (int64_t b = 0; b < tile.batch; b++) {
    for (int64_t i = 0; i < tile.m; i++) {
      std::memcpy(address(tile.c, tile, b, i, 0), tile.bias, tile.n * size);
    }
  }
  tile.bias = nullptr;
  tile.beta = 1;
}

// Calls f(tile) for every tile, in parallel. Tiles hold one matrix unless `batched`.
template <class F>
void for_tiles(const Gemm& g, bool batched, const F& f) {
  const Tiles tiles = choose_tiles(g);
  const int64_t rows = ceil_div(g.m, tiles.m);
  const int64_t columns = ceil_div(g.n, tiles.n);
  const int64_t batches = ceil_div(g.batch, tiles.batch);
  parallel_for(0, batches * rows * columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      const int64_t first = t / (rows * columns) * tiles.batch;
      const int64_t i = t / columns % rows * tiles.m;
      const int64_t j = t % columns * tiles.n;
      Gemm tile = g;
      tile.m = std::min(tiles.m, g.m - i);
      tile.n = std::min(tiles.n, g.n - j);
      if (g.bias != nullptr) {
        tile.bias = static_cast<const char*>(g.bias) + j * itemsize(g.dtype);
      }
      const int64_t count = std::min(tiles.batch, g.batch - first);
      const bool together = batched && g.inner >= g.batch;
      tile.batch = together ? count : 1;
      for (int64_t b = 0; b < count; b += tile.batch) {
        Gemm part = tile;
        place(part, g, first + b, i, j);
        if (part.bias != nullptr) {
          put_bias(part);
        }
        f(part);
      }
    }
  });
}

// c' = b' @ a'
Gemm transposed(const Gemm& g) {
  Gemm t = g;
  std::swap(t.m, t.n);
  std::swap(t.a, t.b);
  for (Matrices* x : {&t.a, &t.b, &t.c}) {
    std::swap(x->row, x->col);
  }
  return t;
}

// ---- the candidates ----

const char* run_tiny(const Gemm& g) {
  if (g.dtype != kFloat32 && g.dtype != kFloat64) {
    return "not float32 or float64";
  }
  if (g.m > tiny_limit || g.n > tiny_limit || g.k > tiny_limit) {
    return "too large";
  }
  for_tiles(g, true, [](const Gemm& tile) { gemm_kernels().tiny(tile); });
  return nullptr;
}

const char* run_vector(const Gemm& g) {
  if (!contains(set_floating, g.dtype)) {
    return "not a real floating dtype";
  }
  if (g.m != 1 && g.n != 1) {
    return "neither side is a vector";
  }
  if (g.n == 1 && (g.a.col == 1 || g.a.row == 1 || g.m == 1)) {
    for_tiles(g, false, gemm_kernels().vector);
    return nullptr;
  }
  if (g.m == 1 && (g.b.row == 1 || g.b.col == 1)) {
    for_tiles(g, false, [](const Gemm& tile) {
      Gemm turned = tile;  // c' = b' @ a'
      std::swap(turned.m, turned.n);
      turned.a = {tile.b.data, tile.b.col, tile.b.row};
      turned.b = {tile.a.data, tile.a.col, tile.a.row};
      turned.c = {tile.c.data, tile.c.col, tile.c.row};
      gemm_kernels().vector(turned);
    });
    return nullptr;
  }
  return "the matrix has neither contiguous rows nor columns";
}

const char* run_outer(const Gemm& g) {
  if (!contains(set_floating, g.dtype)) {
    return "not a real floating dtype";
  }
  if (g.k != 1) {
    return "more than one product an element";
  }
  for_tiles(g, false, gemm_kernels().outer);
  return nullptr;
}

const char* run_onednn_sgemm(const Gemm& g) {
  const char* refusal = onednn::sgemm_refusal(g);
  if (refusal == nullptr) {
    for_tiles(g, false, onednn::sgemm);
  }
  return refusal;
}

// The library is slow with a transposed second factor: it gets a copy that is not.
const char* run_turned(const Gemm& g) {
  if (g.dtype != kFloat32) {
    return "not float32";
  }
  if (g.b.col == 1 || g.b.row != 1) {
    return "the second factor is not transposed";
  }
  const bool one = g.b.batch == 0 && g.b.outer == 0;
  const int64_t matrices = one ? 1 : g.batch;
  const int64_t size = g.k * g.n;
  Gemm plain = g;
  plain.b = {nullptr, g.n, 1, one ? 0 : size};
  if (!one && g.inner < g.batch) {
    plain.b.outer = g.inner * size;
  }
  const char* refusal = onednn::sgemm_refusal(plain);
  if (refusal != nullptr) {
    return refusal;
  }
  constexpr int64_t small_copy = int64_t{1} << 16;
  if (size <= small_copy && g.m >= 64) {  // a copy for each tile stays in its processor's caches
    for_tiles(g, false, [](const Gemm& tile) {
      const int64_t row = tile.n + 16;  // rows at powers of two would share few lines of a cache
      const Scratch<float> turned(tile.k * row);
      gemm_kernels().turn(turned, row, static_cast<const float*>(tile.b.data), tile.b.col, tile.n,
                          tile.k);
      Gemm plain = tile;
      plain.b = {turned.data(), row, 1};
      onednn::sgemm(plain);
    });
    return nullptr;
  }
  const Scratch<float> turned(matrices * size);
  plain.b.data = turned.data();
  constexpr int64_t rows = 64;  // of the copy
  const int64_t parts = ceil_div(g.k, rows);
  parallel_for(0, matrices * parts, std::max<int64_t>(1, 65536 / (rows * g.n)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; t++) {
                   const int64_t p = t % parts * rows;
                   gemm_kernels().turn(turned + t / parts * size + p * g.n, g.n,
                                       static_cast<const float*>(address(g.b, g, t / parts, p, 0)),
                                       g.b.col, g.n, std::min(rows, g.k - p));
                 }
               });
  for_tiles(plain, false, onednn::sgemm);
  return nullptr;
}

// Few rows times a transposed matrix, the usual linear layer: the rows are turned, and the result,
// not the matrix.
const char* run_across(const Gemm& g) {
  if (g.dtype != kFloat32 || !g.beta.equal(0)) {
    return "not float32, or added to";
  }
  if (g.b.col == 1 || g.b.row != 1) {
    return "the second factor is not transposed";
  }
  if (g.m < onednn::least_turned || g.m * (g.k + g.n) >= g.k * g.n) {
    return "too few rows, or too many";
  }
  const Scratch<float> block(g.batch * g.m * g.n);
  const auto* bias = static_cast<const float*>(g.bias);
  Gemm t = transposed(g);  // c' = b' @ a'
  t.c = {block.data(), g.m, 1, g.m * g.n};
  t.c.outer = g.inner < g.batch ? g.inner * g.m * g.n : 0;
  t.bias = nullptr;
  gemm(t);
  parallel_for(0, g.batch, std::max<int64_t>(1, 65536 / (g.m * g.n)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; b++) {
                   float* c = static_cast<float*>(address(g.c, g, b, 0, 0));
                   gemm_kernels().turn(c, g.c.row, block + b * g.m * g.n, g.m, g.n, g.m);
                   for (int64_t i = 0; i < g.m && bias != nullptr; i++) {
                     for (int64_t j = 0; j < g.n; j++) {
                       c[i * g.c.row + j] += bias[j];
                     }
                   }
                 }
               });
  return nullptr;
}

const char* run_onednn_matmul(const Gemm& g) {
  const char* refusal = onednn::matmul_refusal(g);
  if (refusal == nullptr) {
    for_tiles(g, false, onednn::matmul);
  }
  return refusal;
}

const char* run_packed(const Gemm& g) {
  if (!contains(set_floating, g.dtype)) {
    return "not a real floating dtype";
  }
  for_tiles(g, false, gemm_kernels().packed);
  return nullptr;
}

const char* run_blas(const Gemm& g) {
  const char* refusal = blas::gemm_refusal(g);
  if (refusal == nullptr) {
    for_tiles(g, false, blas::gemm);
  }
  return refusal;
}

template <class T>
void reference_typed(const Gemm& g) {
  using C = std::conditional_t<std::is_same_v<T, bool>, int, compute_t<T>>;
  // Integers wrap around: their sums are unsigned.
  using Sum = typename std::conditional_t<is_integer_v<T>, std::make_unsigned<T>,
                                          std::type_identity<C>>::type;
  const T* a = static_cast<const T*>(g.a.data);
  const T* b = static_cast<const T*>(g.b.data);
  T* c = static_cast<T*>(g.c.data);
  const Sum alpha = static_cast<Sum>(g.alpha.as<C>());
  const Sum beta = static_cast<Sum>(g.beta.as<C>());
  const bool add = !g.beta.equal(0);
  // A block of columns at a time: the sums stay in registers and rows of B are read in order.
  constexpr int64_t block = 16;
  for (int64_t i = 0; i < g.m; i++) {
    for (int64_t j = 0; j < g.n; j += block) {
      const int64_t columns = std::min(block, g.n - j);
      Sum sums[block] = {};
      for (int64_t p = 0; p < g.k; p++) {
        const Sum x = static_cast<Sum>(static_cast<C>(read_element(a + i * g.a.row + p * g.a.col)));
        const T* y = b + p * g.b.row + j * g.b.col;
        for (int64_t q = 0; q < columns; q++) {
          sums[q] = static_cast<Sum>(
              sums[q] + static_cast<Sum>(
                            x * static_cast<Sum>(static_cast<C>(read_element(y + q * g.b.col)))));
        }
      }
      for (int64_t q = 0; q < columns; q++) {
        T& to = c[i * g.c.row + (j + q) * g.c.col];
        Sum sum = static_cast<Sum>(alpha * sums[q]);
        if (add) {
          sum = static_cast<Sum>(
              sum + static_cast<Sum>(beta * static_cast<Sum>(static_cast<C>(read_element(&to)))));
        }
        if constexpr (std::is_same_v<T, bool>) {
          to = sum != 0;
        } else {
          to = static_cast<T>(sum);
        }
      }
    }
  }
}

const char* run_reference(const Gemm& g) {
  for_tiles(g, false, gemm_reference);
  return nullptr;
}

constexpr Candidate<Gemm> candidates[] = {
    {"tiny", run_tiny},
    {"vector", run_vector},
    {"column times row", run_outer},
    {"transposed result", run_across},
    {"oneDNN sgemm", run_onednn_sgemm},
    {"transposed copy, oneDNN sgemm", run_turned},
    {"oneDNN matmul", run_onednn_matmul},
    {"packed", run_packed},
    {"OpenBLAS", run_blas},
    {"reference", run_reference},
};

// ---- long sums of small results ----

// Parts of the sum over k that are computed apart and added in order; 1: none.
int64_t choose_parts(const Gemm& g) {
  if ((g.dtype != kFloat32 && g.dtype != kFloat64) || g.k < 4096 || g.m * g.n > 128 * 128) {
    return 1;
  }
  return std::min<int64_t>(16, g.k / 2048);
}

template <class T>
void add_parts(const Gemm& g, const T* parts, int64_t n) {
  T* c = static_cast<T*>(g.c.data);
  const T alpha = g.alpha.as<T>();
  const T beta = g.beta.as<T>();
  for (int64_t i = 0; i < g.m; i++) {
    for (int64_t j = 0; j < g.n; j++) {
      T sum = 0;
      for (int64_t p = 0; p < n; p++) {
        sum += parts[(p * g.m + i) * g.n + j];
      }
      T& to = c[i * g.c.row + j * g.c.col];
      sum *= alpha;
      if (g.bias != nullptr) {
        sum += static_cast<const T*>(g.bias)[j];
      }
      to = beta == T(0) ? sum : sum + beta * to;
    }
  }
}

template <class T>
void gemm_in_parts(const Gemm& g, int64_t parts) {
  const Scratch<T> results(parts * g.m * g.n);
  Gemm one = g;
  one.alpha = 1;
  one.beta = 0;
  one.bias = nullptr;
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
void settle_strides(Matrices& x, int64_t rows, int64_t cols) {
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

}  // namespace

std::string Gemm::describe() const {
  std::string text = str("matmul ", dtype, " ", m, "x", n, "x", k);
  return batch == 1 ? text : str(text, ", batch ", batch);
}

void gemm_reference(const Gemm& g) {
  visit_dtype<set_all>("matmul", g.dtype,
                       [&](auto tag) { reference_typed<typename decltype(tag)::type>(g); });
}

void gemm(const Gemm& problem) {
  Gemm g = problem;
  if (g.batch == 0 || g.m == 0 || g.n == 0) {
    return;
  }
  settle_strides(g.a, g.m, g.k);
  settle_strides(g.b, g.k, g.n);
  settle_strides(g.c, g.m, g.n);
  if (g.c.col != 1) {
    if (g.c.row == 1 && g.bias == nullptr) {
      gemm(transposed(g));
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
  if (g.k == 0) {
    run_reference(g);
    return;
  }
  const int64_t parts = choose_parts(g);
  if (parts > 1) {
    g.dtype == kFloat32 ? gemm_in_parts<float>(g, parts) : gemm_in_parts<double>(g, parts);
    return;
  }
  run_first(candidates, g);
}

}  // namespace rushlight::cpu
