// Matrix products of our own: tiny ones in registers, large ones blocked and packed, and matrix
// times vector. Which of them runs, and on which threads, is decided in cpu/gemm.cpp.
#include "cpu/gemm_kernels.h"
#include "cpu/isa/gemm_engine.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// ---- blocked and packed ----

template <class S, class T>
struct PackB {
  const S* b;
  int64_t row;
  int64_t col;
  void operator()(T* dst, int64_t j, int64_t columns, int64_t p, int64_t k) const {
    using V = Simd<T>;
    constexpr int64_t nr = GemmBlocks<T>::nr;
    const S* from = b + p * row + j * col;
    if (col == 1 && columns == nr) {
      for (int64_t q = 0; q < k; q++) {
        V::store(dst + q * nr, V::load(from + q * row));
        V::store(dst + q * nr + V::width, V::load(from + q * row + V::width));
      }
    } else if (row == 1) {
      for (int64_t x = 0; x < nr; x += V::width) {
        turn(dst + x, nr, from + x * col, col, std::clamp<int64_t>(columns - x, 0, V::width), k,
             T(1));
      }
    } else {
      for (int64_t q = 0; q < k; q++) {
        for (int64_t x = 0; x < nr; x++) {
          dst[q * nr + x] = x < columns ? static_cast<T>(from[q * row + x * col]) : T(0);
        }
      }
    }
  }
};

template <class S>
void packed_typed(const Gemm& g) {
  using T = compute_t<S>;
  const PackA<S, T> pack_a{static_cast<const S*>(g.a.data), g.a.row, g.a.col, g.alpha.as<T>()};
  const PackB<S, T> pack_b{static_cast<const S*>(g.b.data), g.b.row, g.b.col};
  S* c = static_cast<S*>(g.c.data);
  const T beta = g.beta.as<T>();
  if constexpr (std::is_same_v<S, T>) {
    if (beta != T(0) && beta != T(1)) {
      for (int64_t i = 0; i < g.m; i++) {
        for (int64_t j = 0; j < g.n; j++) {
          c[i * g.c.row + j] *= beta;
        }
      }
    }
    gemm_blocked<T>(g.m, g.n, g.k, pack_a, pack_b, c, g.c.row, beta != T(0));
  } else {
    // The sum stays a float until it is complete: one rounding.
    const Scratch<T> sums(g.m * g.n);
    gemm_blocked<T>(g.m, g.n, g.k, pack_a, pack_b, sums.data(), g.n, false);
    for (int64_t i = 0; i < g.m; i++) {
      S* row = c + i * g.c.row;
      const T* sum = sums + i * g.n;
      for (int64_t j = 0; j < g.n; j++) {
        row[j] = S(beta == T(0) ? sum[j] : sum[j] + beta * static_cast<T>(row[j]));
      }
    }
  }
}

void packed(const Gemm& tile) {
  visit_dtype<set_floating>("gemm", tile.dtype,
                            [&](auto tag) { packed_typed<typename decltype(tag)::type>(tile); });
}

// ---- tiny ----

// Columns of B in vectors of `lanes` elements: whole vectors straight from memory, others from a
// padded copy.
template <class T, int lanes>
using Lanes __attribute__((vector_size(lanes * sizeof(T)), aligned(alignof(T)), may_alias)) = T;

template <class T, int lanes>
void tiny_block(const Gemm& g, const T* a, const T* b, int64_t b_row, T* c, int64_t columns) {
  using V = Lanes<T, lanes>;
  const T alpha = g.alpha.as<T>();
  const T beta = g.beta.as<T>();
  for (int64_t i = 0; i < g.m; i++) {
    V even = {};
    V odd = {};
    const T* x = a + i * g.a.row;
    int64_t p = 0;
    for (; p + 2 <= g.k; p += 2) {
      even += x[p * g.a.col] * *reinterpret_cast<const V*>(b + p * b_row);
      odd += x[(p + 1) * g.a.col] * *reinterpret_cast<const V*>(b + (p + 1) * b_row);
    }
    if (p < g.k) {
      even += x[p * g.a.col] * *reinterpret_cast<const V*>(b + p * b_row);
    }
    V sum = (even + odd) * alpha;
    T* row = c + i * g.c.row;
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
  if (g.n <= 4) {
    tiny_lanes<T, 4>(g);
  } else if (g.n <= 8 || Simd<T>::width <= 8) {
    tiny_lanes<T, std::clamp<int>(Simd<T>::width, 4, 8)>(g);
  } else {
    tiny_lanes<T, 16>(g);
  }
}

void tiny(const Gemm& g) {
  if (g.dtype == kFloat32) {
    tiny_typed<float>(g);
  } else {
    tiny_typed<double>(g);
  }
}

// ---- matrix times vector ----

// Rows are contiguous: dot products, four rows at a time.
template <class S, class T>
void rows_times_vector(const Gemm& g, const S* a, const T* x, T* y) {
  using V = Simd<T>;
  using Vec = typename V::V;
  constexpr int64_t w = V::width;
  constexpr int rows = 4;
  const int64_t whole = g.k / w * w;
  for (int64_t i = 0; i < g.m; i += rows) {
    const S* from[rows];
    Vec acc[rows][2];
    for (int r = 0; r < rows; r++) {
      from[r] = a + std::min(i + r, g.m - 1) * g.a.row;
      acc[r][0] = V::zero();
      acc[r][1] = V::zero();
    }
    int64_t p = 0;
    for (; p + 2 * w <= whole; p += 2 * w) {
      const Vec x0 = V::load(x + p);
      const Vec x1 = V::load(x + p + w);
      for (int r = 0; r < rows; r++) {
        acc[r][0] = V::fma(V::load(from[r] + p), x0, acc[r][0]);
        acc[r][1] = V::fma(V::load(from[r] + p + w), x1, acc[r][1]);
      }
    }
    for (; p < whole; p += w) {
      const Vec x0 = V::load(x + p);
      for (int r = 0; r < rows; r++) {
        acc[r][0] = V::fma(V::load(from[r] + p), x0, acc[r][0]);
      }
    }
    if (whole < g.k) {
      const Vec x0 = load_first(x + whole, g.k - whole);
      for (int r = 0; r < rows; r++) {
        acc[r][1] = V::fma(load_first(from[r] + whole, g.k - whole), x0, acc[r][1]);
      }
    }
    for (int r = 0; r < rows && i + r < g.m; r++) {
      y[i + r] = sum_lanes<T>(V::add(acc[r][0], acc[r][1]));
    }
  }
}

// One row: sums in many lanes where it is contiguous.
template <class S, class T>
T dot_product(int64_t k, const S* a, int64_t step, const T* x) {
  using V = Simd<T>;
  if (step == 1) {
    return sums_over<T, 1>(k, [&](int64_t i, int64_t n) {
      return Vectors<T, 1>{{V::mul(load_some(a + i, n), load_some(x + i, n))}};
    })[0];
  }
  T sum = 0;
  for (int64_t p = 0; p < k; p++) {
    sum += static_cast<T>(a[p * step]) * x[p];
  }
  return sum;
}

// Columns are contiguous: y += column * x, four columns at a time over the whole of y.
template <class S, class T>
void columns_times_vector(const Gemm& g, const S* a, const T* x, T* y) {
  using V = Simd<T>;
  using Vec = typename V::V;
  constexpr int64_t w = V::width;
  constexpr int columns = 4;
  std::fill_n(y, g.m, T(0));
  const int64_t whole = g.m / w * w;
  for (int64_t p = 0; p < g.k; p += columns) {
    const S* from[columns];
    T factor[columns];
    for (int q = 0; q < columns; q++) {
      from[q] = a + std::min(p + q, g.k - 1) * g.a.col;
      factor[q] = p + q < g.k ? x[p + q] : T(0);
    }
    const int64_t present = std::min<int64_t>(columns, g.k - p);
    const auto step = [&](auto load, int64_t i, Vec sum) {
      for (int q = 0; q < present; q++) {
        sum = V::fma(load(from[q] + i), V::set1(factor[q]), sum);
      }
      return sum;
    };
    int64_t i = 0;
    for (; i < whole; i += w) {
      V::store(y + i, step([](const S* s) { return V::load(s); }, i, V::load(y + i)));
    }
    if (i < g.m) {
      const int64_t n = g.m - i;
      store_first(y + i,
                  step([n](const S* s) { return load_first(s, n); }, i, load_first(y + i, n)), n);
    }
  }
}

template <class S>
void vector_typed(const Gemm& g) {
  using T = compute_t<S>;
  const S* a = static_cast<const S*>(g.a.data);
  const S* x = static_cast<const S*>(g.b.data);
  S* out = static_cast<S*>(g.c.data);
  const T alpha = g.alpha.as<T>();
  const T beta = g.beta.as<T>();
  const bool in_place = std::is_same_v<S, T> && g.b.row == 1;
  const Scratch<T> memory((in_place ? 0 : g.k) + g.m);
  T* y = memory;
  const T* vector = reinterpret_cast<const T*>(x);
  if (!in_place) {
    T* copy = memory + g.m;
    for (int64_t p = 0; p < g.k; p++) {
      copy[p] = static_cast<T>(x[p * g.b.row]);
    }
    vector = copy;
  }
  if (g.m == 1) {
    y[0] = dot_product<S, T>(g.k, a, g.a.col, vector);
  } else if (g.a.col == 1) {
    rows_times_vector<S, T>(g, a, vector, y);
  } else {
    columns_times_vector<S, T>(g, a, vector, y);
  }
  for (int64_t i = 0; i < g.m; i++) {
    S& to = out[i * g.c.row];
    to = S(beta == T(0) ? alpha * y[i] : alpha * y[i] + beta * static_cast<T>(to));
  }
}

void vector(const Gemm& tile) {
  visit_dtype<set_floating>("gemv", tile.dtype,
                            [&](auto tag) { vector_typed<typename decltype(tag)::type>(tile); });
}

// ---- a column times a row ----

template <class S>
void outer_typed(const Gemm& g) {
  using T = compute_t<S>;
  using V = Simd<T>;
  const S* a = static_cast<const S*>(g.a.data);
  const S* b = static_cast<const S*>(g.b.data);
  S* c = static_cast<S*>(g.c.data);
  const T alpha = g.alpha.as<T>();
  const T beta = g.beta.as<T>();
  const Scratch<T> row(g.n);
  for (int64_t j = 0; j < g.n; j++) {
    row[j] = alpha * static_cast<T>(b[j * g.b.col]);
  }
  for (int64_t i = 0; i < g.m; i++) {
    const typename V::V x = V::set1(static_cast<T>(a[i * g.a.row]));
    S* to = c + i * g.c.row;
    for_vectors<T>(g.n, [&](int64_t j, int64_t n) {
      typename V::V v = V::mul(x, load_some(row + j, n));
      if (beta != T(0)) {
        v = V::fma(V::set1(beta), load_some(to + j, n), v);
      }
      store_some(to + j, v, n);
    });
  }
}

void outer(const Gemm& tile) {
  visit_dtype<set_floating>("gemm", tile.dtype,
                            [&](auto tag) { outer_typed<typename decltype(tag)::type>(tile); });
}

// ---- a transposed copy ----

// Squares of one vector's width; rows of the copy are written from start to end.
void turn_matrix(float* to, int64_t ld, const float* from, int64_t row, int64_t rows,
                 int64_t columns) {
  using V = Simd<float>;
  constexpr int64_t w = V::width;
  for (int64_t q = 0; q < columns; q += w) {
    const int64_t n = std::min(w, columns - q);
    for (int64_t r = 0; r < rows; r += w) {
      const int64_t m = std::min(w, rows - r);
      V::V block[w];
      if (n == w && m == w) {
#pragma GCC unroll 16
        for (int64_t i = 0; i < w; i++) {
          block[i] = V::load(from + (r + i) * row + q);
        }
        transpose<float>(block);
#pragma GCC unroll 16
        for (int64_t i = 0; i < w; i++) {
          V::store(to + (q + i) * ld + r, block[i]);
        }
        continue;
      }
      for (int64_t i = 0; i < w; i++) {
        block[i] = i < m ? load_some(from + (r + i) * row + q, n) : V::zero();
      }
      transpose<float>(block);
      for (int64_t i = 0; i < n; i++) {
        store_some(to + (q + i) * ld + r, block[i], m);
      }
    }
  }
}

}  // namespace

const GemmKernels gemm_kernels = {tiny, packed, vector, outer, turn_matrix};

}  // namespace rushlight::cpu::RL_ISA
