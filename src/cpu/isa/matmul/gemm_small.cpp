// Products with few rows or small matrices: tiny ones in registers, sums along contiguous memory,
// and a vector times a matrix. Which of them runs, and on which threads, is decided in
// cpu/gemm.cpp.
#include "cpu/gemm_kernels.h"
#include "cpu/isa/matmul/gemm_engine.h"
#include "cpu/isa/pointwise/cast.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// ---- tiny ----

// Columns of B in vectors of `lanes` elements: whole vectors straight from memory, others from a
// padded copy.
template <class T, int lanes>
using Lanes __attribute__((vector_size(lanes * sizeof(T)), aligned(alignof(T)), may_alias)) = T;

template <class V>
RL_ALWAYS_INLINE V fused(V a, V b, V c) {
#if defined(__FMA__)
  using T = std::remove_cvref_t<decltype(a[0])>;
  if constexpr (sizeof(V) == 16 && sizeof(T) == 4) {
    return reinterpret_cast<V>(_mm_fmadd_ps(
        reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b), reinterpret_cast<__m128>(c)));
  } else if constexpr (sizeof(V) == sizeof(typename Simd<T>::V)) {
    using W = typename Simd<T>::V;
    return reinterpret_cast<V>(
        Simd<T>::fma(reinterpret_cast<W>(a), reinterpret_cast<W>(b), reinterpret_cast<W>(c)));
  } else if constexpr (sizeof(T) == 4) {
    return reinterpret_cast<V>(_mm256_fmadd_ps(
        reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
  } else {
    return reinterpret_cast<V>(_mm256_fmadd_pd(
        reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b), reinterpret_cast<__m256d>(c)));
  }
#else
  return a * b + c;
#endif
}

// `rows` rows of the result from row i on: a vector of each.
template <class T, int lanes, int rows>
void tiny_rows(const Gemm& g, const T* a, const T* b, int64_t b_row, T* c, int64_t columns) {
  using V = Lanes<T, lanes>;
  const T beta = g.beta.as<T>();
  V sums[rows] = {};
  for (int64_t p = 0; p < g.k; p++) {
    const V y = *reinterpret_cast<const V*>(b + p * b_row);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      sums[r] = fused(V{} + a[r * g.a.row + p * g.a.col], y, sums[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    V sum = sums[r] * g.alpha.as<T>();
    T* const row = c + r * g.c.row;
    if (columns == lanes) {
      if (beta != T(0)) {
        sum += beta * *reinterpret_cast<const V*>(row);
      }
      *reinterpret_cast<V*>(row) = sum;
    } else {
      for (int64_t j = 0; j < columns; j++) {
        row[j] = beta != T(0) ? sum[j] + beta * row[j] : sum[j];
      }
    }
  }
}

template <class T, int lanes>
void tiny_block(const Gemm& g, const T* a, const T* b, int64_t b_row, T* c, int64_t columns) {
  int64_t i = 0;
  const auto run = [&](auto rows) {
    for (; i + rows <= g.m; i += rows) {
      tiny_rows<T, lanes, rows>(g, a + i * g.a.row, b, b_row, c + i * g.c.row, columns);
    }
  };
  run(std::integral_constant<int, 8>());
  run(std::integral_constant<int, 4>());
  run(std::integral_constant<int, 2>());
  run(std::integral_constant<int, 1>());
}

template <class T, int lanes>
void tiny_lanes(const Gemm& g) {
  for (int64_t batch = 0; batch < g.batch; batch++) {
    const T* a = static_cast<const T*>(g.a.data) + batch * g.a.batch;
    const T* b = static_cast<const T*>(g.b.data) + batch * g.b.batch;
    T* c = static_cast<T*>(g.c.data) + batch * g.c.batch;
    for (int64_t j = 0; j < g.n; j += lanes) {
      const int64_t columns = std::min<int64_t>(lanes, g.n - j);
      if (columns == lanes && g.b.col == 1) {
        tiny_block<T, lanes>(g, a, b + j, g.b.row, c + j, columns);
      } else {
        T padded[tiny_limit * lanes] = {};
        for (int64_t p = 0; p < g.k; p++) {
          for (int64_t x = 0; x < columns; x++) {
            padded[p * lanes + x] = b[p * g.b.row + (j + x) * g.b.col];
          }
        }
        tiny_block<T, lanes>(g, a, padded, lanes, c + j, columns);
      }
    }
  }
}

template <class T>
void tiny_typed(const Gemm& g) {
  constexpr int width = Simd<T>::width;
  if (width <= 4 || g.n <= 4) {
    tiny_lanes<T, 4>(g);
  } else if (width <= 8 || g.n <= 8) {
    tiny_lanes<T, std::min(8, width)>(g);
  } else {
    tiny_lanes<T, std::min(16, width)>(g);
  }
}

void multiply_tiny(const Gemm& g) {
  if (g.dtype == kFloat32) {
    tiny_typed<float>(g);
  } else {
    tiny_typed<double>(g);
  }
}

// ---- sums along contiguous memory ----

// Row i of the result from column j on: sums and what is added to them, rounded once.
template <class S, class T>
void finish(const Gemm& g, int64_t i, int64_t j, const T* sums, int64_t n) {
  const T alpha = g.alpha.as<T>();
  const T beta = g.beta.as<T>();
  S* const to = static_cast<S*>(g.c.data) + i * g.c.row + j * g.c.col;
  for (int64_t x = 0; x < n; x++) {
    T sum = alpha * sums[x];
    if (g.bias) {
      sum += static_cast<T>(*g.bias.at<S>(i, j + x));
    } else if (beta != T(0)) {
      sum += beta * static_cast<T>(to[x * g.c.col]);
    }
    to[x * g.c.col] = S(sum);
  }
}

// The sums of the lanes of n vectors, each in the order of sum_lanes.
template <class T, int n>
inline __attribute__((always_inline)) void sum_all(const typename Simd<T>::V* vectors, T* sums) {
  using V = Simd<T>;
  constexpr int w = V::width;
  int first = 0;
#pragma GCC unroll 4
  for (; first + w <= n; first += w) {
    typename V::V square[w];
#pragma GCC unroll 16
    for (int i = 0; i < w; i++) {
      square[i] = vectors[first + i];
    }
    transpose<T>(square);
#pragma GCC unroll 4
    for (int half = w / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < half; i++) {
        square[i] = V::add(square[i], square[i + half]);
      }
    }
    V::store(sums + first, square[0]);
  }
#pragma GCC unroll 16
  for (; first < n; first++) {
    sums[first] = sum_lanes<T>(vectors[first]);
  }
}

// `rows` rows of A by `columns` of B. The vectors of a row go to `ways` sums in turn.
template <class S, int rows, int columns, int ways>
void dot_block(const Gemm& g, int64_t i, int64_t j) {
  using T = compute_t<S>;
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  const S* const a = static_cast<const S*>(g.a.data) + i * g.a.row;
  const S* const b = static_cast<const S*>(g.b.data) + j * g.b.col;
  typename V::V acc[ways][rows][columns];
#pragma GCC unroll 4
  for (int u = 0; u < ways; u++) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
      for (int q = 0; q < columns; q++) {
        acc[u][r][q] = V::zero();
      }
    }
  }
  int64_t p = 0;
  for (; p + ways * w <= g.k; p += ways * w) {
#pragma GCC unroll 4
    for (int u = 0; u < ways; u++) {
      typename V::V x[rows];
#pragma GCC unroll 4
      for (int r = 0; r < rows; r++) {
        x[r] = V::load(a + r * g.a.row + p + u * w);
      }
#pragma GCC unroll 8
      for (int q = 0; q < columns; q++) {
        const typename V::V y = V::load(b + q * g.b.col + p + u * w);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
          acc[u][r][q] = V::fma(x[r], y, acc[u][r][q]);
        }
      }
    }
  }
  for (; p < g.k; p += w) {
    const int64_t n = std::min(w, g.k - p);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      const typename V::V x = load_some(a + r * g.a.row + p, n);
#pragma GCC unroll 8
      for (int q = 0; q < columns; q++) {
        acc[0][r][q] = V::fma(x, load_some(b + q * g.b.col + p, n), acc[0][r][q]);
      }
    }
  }
  typename V::V total[rows * columns];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
    for (int q = 0; q < columns; q++) {
      total[r * columns + q] = acc[0][r][q];
#pragma GCC unroll 4
      for (int u = 1; u < ways; u++) {
        total[r * columns + q] = V::add(total[r * columns + q], acc[u][r][q]);
      }
    }
  }
  T sums[rows * columns];
  sum_all<T, rows * columns>(total, sums);
  for (int r = 0; r < rows; r++) {
    finish<S, T>(g, i + r, j, sums + r * columns, columns);
  }
}

// Rows of a block of four columns, whose sums and one row of each factor fit into the registers.
#if defined(__AVX512F__)
constexpr int64_t dot_rows = 4;
#else
constexpr int64_t dot_rows = 3;
#endif

template <class S>
void dots_typed(const Gemm& g) {
  if (g.m == 1 && g.n == 1) {
    dot_block<S, 1, 1, 4>(g, 0, 0);
    return;
  }
  const auto block = [&](int64_t i, int64_t rows, int64_t j, int64_t columns) {
    const bool one = columns == 1;
    if constexpr (dot_rows == 4) {
      if (rows == 4) {
        return one ? dot_block<S, 4, 1, 1>(g, i, j) : dot_block<S, 4, 4, 1>(g, i, j);
      }
    }
    switch (rows) {
      case 3:
        return one ? dot_block<S, 3, 1, 1>(g, i, j) : dot_block<S, 3, 4, 1>(g, i, j);
      case 2:
        return one ? dot_block<S, 2, 1, 1>(g, i, j) : dot_block<S, 2, 4, 1>(g, i, j);
      default:
        return one ? dot_block<S, 1, 1, 1>(g, i, j) : dot_block<S, 1, 4, 1>(g, i, j);
    }
  };
  const auto rows = [&](const auto& f) {
    for (int64_t i = 0; i < g.m; i += dot_rows) {
      f(i, std::min(dot_rows, g.m - i));
    }
  };
  const auto columns = [&](const auto& f) {
    for (int64_t j = 0; j < g.n; j += g.n - j >= 4 ? 4 : 1) {
      f(j, g.n - j >= 4 ? 4 : 1);
    }
  };
  // Of the factor that the outer loop follows every element is read once.
  if (g.m > g.n) {
    rows([&](int64_t i, int64_t r) { columns([&](int64_t j, int64_t c) { block(i, r, j, c); }); });
  } else {
    columns([&](int64_t j, int64_t c) { rows([&](int64_t i, int64_t r) { block(i, r, j, c); }); });
  }
}

// One sum of each matrix of a batch: as many at a time as a vector has lanes, which are added up
// together.
template <class S>
void dots_of_batch(const Gemm& g) {
  using T = compute_t<S>;
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  constexpr int ways = 4;
  Gemm results = g;
  results.c.col = g.c.batch;
  for (int64_t first = 0; first < g.batch; first += w) {
    const int64_t count = std::min(w, g.batch - first);
    typename V::V total[w];
    std::fill_n(total, w, V::zero());
    for (int64_t q = 0; q < count; q++) {
      const S* const a = static_cast<const S*>(g.a.data) + (first + q) * g.a.batch;
      const S* const b = static_cast<const S*>(g.b.data) + (first + q) * g.b.batch;
      typename V::V acc[ways] = {V::zero(), V::zero(), V::zero(), V::zero()};
      int64_t p = 0;
      for (; p + ways * w <= g.k; p += ways * w) {
#pragma GCC unroll 4
        for (int u = 0; u < ways; u++) {
          acc[u] = V::fma(V::load(a + p + u * w), V::load(b + p + u * w), acc[u]);
        }
      }
      for (; p < g.k; p += w) {
        const int64_t n = std::min(w, g.k - p);
        acc[0] = V::fma(load_some(a + p, n), load_some(b + p, n), acc[0]);
      }
      total[q] = V::add(V::add(V::add(acc[0], acc[1]), acc[2]), acc[3]);
    }
    T sums[w];
    sum_all<T, w>(total, sums);
    finish<S, T>(results, 0, first, sums, count);
  }
}

// The same for sums of few terms: matrices side by side, term by term.
template <class S>
void short_dots_of_batch(const Gemm& g) {
  using T = compute_t<S>;
  using V = Simd<T>;
  constexpr int64_t size = sizeof(S);
  constexpr int64_t together = 64;
  Gemm results = g;
  results.c.col = g.c.batch;
  alignas(64) S a[short_sum * together];
  alignas(64) S b[short_sum * together];
  const auto turn = [&](S* to, const Matrices& x, int64_t first, int64_t count) {
    const auto* from = static_cast<const char*>(x.data) + first * x.batch * size;
    transpose(reinterpret_cast<char*>(to), together * size, from, x.batch * size, size, g.k, count);
  };
  for (int64_t first = 0; first < g.batch; first += together) {
    const int64_t count = std::min(together, g.batch - first);
    turn(a, g.a, first, count);
    turn(b, g.b, first, count);
    T sums[together];
    for (int64_t i = 0; i < count; i += V::width) {
      const int64_t n = std::min<int64_t>(V::width, count - i);
      typename V::V sum = V::zero();
      for (int64_t p = 0; p < g.k; p++) {
        const int64_t at = p * together + i;
        sum = V::fma(load_some(a + at, n), load_some(b + at, n), sum);
      }
      store_some(sums + i, sum, n);
    }
    finish<S, T>(results, 0, first, sums, count);
  }
}

void dots(const Gemm& tile) {
  // A pair has the same bits alone and in a batch.
  if (tile.m == 1 && tile.n == 1 && tile.k <= short_sum) {
    visit_dtype<set_floating>("matmul", tile.dtype, [&](auto tag) {
      short_dots_of_batch<typename decltype(tag)::type>(tile);
    });
    return;
  }
  if (tile.batch > 1) {
    visit_dtype<set_floating>("matmul", tile.dtype,
                              [&](auto tag) { dots_of_batch<typename decltype(tag)::type>(tile); });
    return;
  }
  visit_dtype<set_floating>("matmul", tile.dtype,
                            [&](auto tag) { dots_typed<typename decltype(tag)::type>(tile); });
}

// ---- rows of B added up ----

// sums[i][j] += A[i, p] * B[p, j] for `depth` rows of B from p on.
template <class S, class T, int rows, int depth>
void add_rows(const Gemm& g, int64_t p, T* sums) {
  using V = Simd<T>;
  const S* const a = static_cast<const S*>(g.a.data);
  const S* const b = static_cast<const S*>(g.b.data) + p * g.b.row;
  typename V::V factor[rows][depth];
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
    for (int q = 0; q < depth; q++) {
      factor[i][q] = V::set1(static_cast<T>(a[i * g.a.row + (p + q) * g.a.col]));
    }
  }
  for_vectors<T>(g.n, [&](int64_t j, int64_t n) {
    typename V::V x[depth];
#pragma GCC unroll 4
    for (int q = 0; q < depth; q++) {
      x[q] = load_some(b + q * g.b.row + j, n);
      // A stretch of a row is too short for the processor to foresee the next rows; of one row of A
      // fetching would cost more than it brings.
      if (rows > 1 && j * sizeof(S) % 64 == 0) {
        __builtin_prefetch(b + (q + 2 * depth) * g.b.row + j);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
      T* const to = sums + i * g.n + j;
      typename V::V sum = load_some(to, n);
#pragma GCC unroll 4
      for (int q = 0; q < depth; q++) {
        sum = V::fma(factor[i][q], x[q], sum);
      }
      store_some(to, sum, n);
    }
  });
}

template <class S, int rows>
void rows_typed(const Gemm& g) {
  using T = compute_t<S>;
  const Scratch<T> sums(rows * g.n);
  std::fill_n(sums.data(), rows * g.n, T(0));
  int64_t p = 0;
  for (; p + 4 <= g.k; p += 4) {
    add_rows<S, T, rows, 4>(g, p, sums);
  }
  for (; p < g.k; p++) {
    add_rows<S, T, rows, 1>(g, p, sums);
  }
  for (int64_t i = 0; i < rows; i++) {
    finish<S, T>(g, i, 0, sums + i * g.n, g.n);
  }
}

// Of integers, which the compiler knows how to multiply.
template <class S>
void rows_of_integers(const Gemm& g) {
  using T = sum_t<S>;
  const Scratch<T> sums(g.n);
  for (int64_t i = 0; i < g.m; i++) {
    const S* const a = static_cast<const S*>(g.a.data) + i * g.a.row;
    const S* const b = static_cast<const S*>(g.b.data);
    T* const sum = sums;
    std::fill_n(sum, g.n, T(0));
    int64_t p = 0;
    for (; p + 4 <= g.k; p += 4) {
      const S* const x = a + p * g.a.col;
      const T x0 = static_cast<T>(x[0]);
      const T x1 = static_cast<T>(x[g.a.col]);
      const T x2 = static_cast<T>(x[2 * g.a.col]);
      const T x3 = static_cast<T>(x[3 * g.a.col]);
      const S* const y = b + p * g.b.row;
      for (int64_t j = 0; j < g.n; j++) {
        sum[j] += x0 * static_cast<T>(y[j]) + x1 * static_cast<T>(y[g.b.row + j]) +
                  x2 * static_cast<T>(y[2 * g.b.row + j]) + x3 * static_cast<T>(y[3 * g.b.row + j]);
      }
    }
    for (; p < g.k; p++) {
      const T x = static_cast<T>(a[p * g.a.col]);
      for (int64_t j = 0; j < g.n; j++) {
        sum[j] += x * static_cast<T>(b[p * g.b.row + j]);
      }
    }
    const T alpha = static_cast<T>(g.alpha.as<int64_t>());
    const T beta = static_cast<T>(g.beta.as<int64_t>());
    S* const to = static_cast<S*>(g.c.data) + i * g.c.row;
    for (int64_t j = 0; j < g.n; j++) {
      T total = alpha * sum[j];
      if (g.bias) {
        total += static_cast<T>(*g.bias.at<S>(i, j));
      } else if (beta != T(0)) {
        total += beta * static_cast<T>(to[j * g.c.col]);
      }
      to[j * g.c.col] = static_cast<S>(total);
    }
  }
}

void rows(const Gemm& tile) {
  if (!contains(set_floating, tile.dtype)) {
    visit_dtype<set_integers>("matmul", tile.dtype, [&](auto tag) {
      rows_of_integers<typename decltype(tag)::type>(tile);
    });
    return;
  }
  visit_dtype<set_floating>("matmul", tile.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    switch (tile.m) {
      case 1:
        return rows_typed<S, 1>(tile);
      case 2:
        return rows_typed<S, 2>(tile);
      case 3:
        return rows_typed<S, 3>(tile);
      default:
        return rows_typed<S, 4>(tile);
    }
  });
}

}  // namespace

const SmallGemmKernels small_gemm_kernels = {multiply_tiny, dots, rows};

}  // namespace rushlight::cpu::RL_ISA
