// The blocked matrix product for float and double. Operands are brought in panels by two functions,
// so the same loops serve plain matrices of any strides and dtype (gemm.cpp) and the windows of a
// convolution (conv.cpp). Panels: of A `rows` rows side by side for each k, of B `nr` columns side
// by side for each k. The micro-kernel keeps a rows x nr block of C in registers. Sums run in steps
// of k_step elements, in order, whatever the other sizes.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "cpu/isa/simd.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

// Integers wrap around: they are summed without a sign.
template <class T>
  requires(std::is_unsigned_v<T>)
struct Simd<T> {
  static constexpr int64_t width = sizeof(Simd<float>::V) / sizeof(T);
  typedef T V __attribute__((vector_size(sizeof(Simd<float>::V)), aligned(alignof(T)), may_alias));
  static V zero() { return V{}; }
  static V set1(T x) { return V{} + x; }
  static V load(const T* p) { return *reinterpret_cast<const V*>(p); }
  static void store(T* p, V v) { *reinterpret_cast<V*>(p) = v; }
  static V mul(V a, V b) { return a * b; }
  static V fma(V a, V b, V c) { return a * b + c; }
};

// What elements of S are summed as.
template <class S>
struct sum_type {
  using type = compute_t<real_t<S>>;
};
template <class S>
  requires(is_integer_v<S> || std::is_same_v<S, bool>)
struct sum_type<S> {
  using type = std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>;
};
template <class S>
using sum_t = typename sum_type<S>::type;

template <class T>
struct GemmBlocks {
  static constexpr int64_t width = Simd<T>::width;
#if defined(__AVX512F__)
  static constexpr int64_t max_rows = 14;  // 28 accumulators of 32 registers
#elif defined(__aarch64__)
  static constexpr int64_t max_rows = 8;  // 16, and addresses and numbers that are broadcast
#else
  static constexpr int64_t max_rows = 6;  // 12 accumulators of 16 registers
#endif
  static constexpr int64_t nr = 2 * width;
  // Whether a panel of B stays in the first-level cache for all of A, else one of A for all of B.
  static constexpr bool b_stays = max_rows == 6;
  static constexpr int64_t k_step = 256;      // a panel of A and one of B in the first-level cache
  static constexpr int64_t m_step = 168;      // a block of A in the second-level cache
  static constexpr int64_t n_step = 16 * 32;  // a block of B in the next
};

// How elements E of the factors are multiplied and added up: numbers as they are. Other E stand for
// several terms of a sum at once.
template <class E>
struct Terms : Simd<E> {
  using Sum = E;
};

// What a micro-kernel computes: rows x columns of c = alpha * a @ b + beta * from, where `from` is
// nothing, c itself or a row of biases; `numbers` are added to rows. Operands may lie in panels or
// in place.
template <class E>
struct Micro {
  using T = typename Terms<E>::Sum;
  int64_t k;
  const E* a;
  int64_t a_row;
  int64_t a_col;
  const E* b;  // whole vectors are read, whatever `columns` says
  int64_t b_row;
  T* c;
  int64_t c_row;
  int64_t columns;
  T alpha;
  const T* from;
  int64_t from_row;
  T beta;
  const T* numbers;
  // Rows that are needed next: `fetches` kernels fetch a line of the cache of them for each k.
  struct Rows {
    const char* data;
    int64_t count;
    int64_t row;  // bytes from one to the next
  };
  Rows ahead;
};

template <class E, int rows, int vectors, bool fetches>
inline __attribute__((always_inline)) void micro_kernel(const Micro<E>& z) {
  using P = Terms<E>;
  using T = typename P::Sum;
  using S = Simd<T>;
  using V = typename S::V;
  constexpr int64_t w = S::width;
  V acc[rows][vectors];
#pragma GCC unroll 14
  for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
      acc[i][v] = S::zero();
    }
  }
  // One address serves three rows, so that all fit into registers.
  constexpr int groups = (rows + 2) / 3;
  const E* a[groups];
#pragma GCC unroll 5
  for (int g = 0; g < groups; g++) {
    a[g] = z.a + 3 * g * z.a_row;
  }
  if (GemmBlocks<T>::b_stays && z.k >= 64) {
    // Rows of the result may be pages apart.
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
      __builtin_prefetch(z.c + i * z.c_row, 1);
    }
  }
  const E* b = z.b;
  const char* ahead = z.ahead.data;
  int64_t ahead_rows = z.ahead.count;
  for (int64_t p = z.k; p > 0; p--) {
    V bs[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
      bs[v] = P::load(b + v * w);
      // In place, rows of B may be far apart: the processor does not foresee them.
      if (v * w * sizeof(E) % 64 == 0) {
        __builtin_prefetch(b + 8 * z.b_row + v * w);
      }
    }
    b += z.b_row;
    if constexpr (fetches) {
      __builtin_prefetch(ahead, 0, 2);
      ahead += z.ahead.row;
      if (--ahead_rows == 0) {
        ahead_rows = z.ahead.count;
        ahead += 64 - z.ahead.count * z.ahead.row;
      }
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
      const V x = P::set1(a[i / 3][i % 3 * z.a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) {
        acc[i][v] = P::fma(x, bs[v], acc[i][v]);
      }
    }
#pragma GCC unroll 5
    for (int g = 0; g < groups; g++) {
      a[g] += z.a_col;
    }
  }
  if (z.alpha != T(1)) {
    const V alpha = S::set1(z.alpha);
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) {
        acc[i][v] = S::mul(acc[i][v], alpha);
      }
    }
  }
  if (z.numbers != nullptr) {
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) {
        acc[i][v] += S::set1(z.numbers[i]);
      }
    }
  }
  const V beta = S::set1(z.beta);
  if (z.columns == vectors * w) {
    if (z.from != nullptr) {
#pragma GCC unroll 14
      for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
          acc[i][v] = S::fma(beta, S::load(z.from + i * z.from_row + v * w), acc[i][v]);
        }
      }
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) {
        S::store(z.c + i * z.c_row + v * w, acc[i][v]);
      }
    }
    return;
  }
  alignas(64) T block[rows * vectors * w];
#pragma GCC unroll 14
  for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
      S::store(block + (i * vectors + v) * w, acc[i][v]);
    }
  }
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < z.columns; j += w) {
      const int64_t n = std::min(w, z.columns - j);
      V sum = S::load(block + i * vectors * w + j);
      if (z.from != nullptr) {
        sum = S::fma(beta, load_some(z.from + i * z.from_row + j, n), sum);
      }
      store_some(z.c + i * z.c_row + j, sum, n);
    }
  }
}

// c[rows x nr] = (accumulate ? c : 0) + a panel @ b panel; or the first vector of each row alone.
template <class T, int rows, int vectors>
void panel_kernel(int64_t k, const T* a, const T* b, T* c, int64_t ldc, bool accumulate) {
  constexpr int64_t nr = GemmBlocks<T>::nr;
  micro_kernel<T, rows, vectors, false>({.k = k,
                                         .a = a,
                                         .a_row = 1,
                                         .a_col = rows,
                                         .b = b,
                                         .b_row = nr,
                                         .c = c,
                                         .c_row = ldc,
                                         .columns = nr / 2 * vectors,
                                         .alpha = T(1),
                                         .from = accumulate ? c : nullptr,
                                         .from_row = ldc,
                                         .beta = T(1),
                                         .numbers = nullptr,
                                         .ahead = {}});
}

template <class T>
using MicroKernel = void (*)(int64_t k, const T* a, const T* b, T* c, int64_t ldc, bool accumulate);

template <class T, int vectors = 2, size_t... I>
constexpr std::array<MicroKernel<T>, sizeof...(I)> micro_kernels(std::index_sequence<I...>) {
  return {&panel_kernel<T, static_cast<int>(I) + 1, vectors>...};
}

// One k step of a block: a panels [m rows in `panels` panels] times b panels, into c.
template <class T>
void multiply_panels(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c, int64_t ldc,
                     bool accumulate) {
  using B = GemmBlocks<T>;
  static constexpr auto kernels = micro_kernels<T>(std::make_index_sequence<B::max_rows>());
  const int64_t panels = (m + B::max_rows - 1) / B::max_rows;
  for (int64_t j = 0; j < n; j += B::nr) {
    const int64_t columns = std::min(B::nr, n - j);
    int64_t i = 0;
    for (int64_t panel = 0; panel < panels; panel++) {
      const int64_t rows = m * (panel + 1) / panels - i;
      if (columns == B::nr) {
        kernels[rows - 1](k, a + i * k, b + j * k, c + i * ldc + j, ldc, accumulate);
      } else {
        T block[B::max_rows * B::nr];
        kernels[rows - 1](k, a + i * k, b + j * k, block, B::nr, false);
        for (int64_t r = 0; r < rows; r++) {
          T* row = c + (i + r) * ldc + j;
          for (int64_t x = 0; x < columns; x++) {
            row[x] = accumulate ? row[x] + block[r * B::nr + x] : block[r * B::nr + x];
          }
        }
      }
      i += rows;
    }
  }
}

// Rows of A from i to i + m, columns p to p + k, as multiply_panels wants them.
// pack(dst, i, rows, p, k) writes one panel: dst[q * rows + r] = A[i + r, p + q]; what follows it
// in memory it may spoil.
template <class T, class Pack>
void pack_rows(T* dst, int64_t i, int64_t m, int64_t p, int64_t k, const Pack& pack) {
  using B = GemmBlocks<T>;
  const int64_t panels = (m + B::max_rows - 1) / B::max_rows;
  int64_t done = 0;
  for (int64_t panel = 0; panel < panels; panel++) {
    const int64_t rows = m * (panel + 1) / panels - done;
    pack(dst + done * k, i + done, rows, p, k);
    done += rows;
  }
}

// c = (accumulate ? c : 0) + A @ B. rows_of_a(i, rows, p, k) gives packed rows; pack_b(dst, j,
// columns, p, k) writes one panel of nr columns, dst[q * nr + x] = B[p + q, j + x], anything where
// x >= columns, and may spoil a vector behind it.
template <class T, class RowsOfA, class PackB>
void gemm_panels(int64_t m, int64_t n, int64_t k, const RowsOfA& rows_of_a, const PackB& pack_b,
                 T* c, int64_t ldc, bool accumulate) {
  using B = GemmBlocks<T>;
  const int64_t k_block = std::min(k, B::k_step);
  const int64_t n_block = std::min((n + B::nr - 1) / B::nr * B::nr, B::n_step);
  const Scratch<T> b_panels(n_block * k_block + B::width);
  for (int64_t j = 0; j < n; j += n_block) {
    const int64_t columns = std::min(n_block, n - j);
    for (int64_t p = 0; p < k; p += k_block) {
      const int64_t depth = std::min(k_block, k - p);
      for (int64_t x = 0; x < columns; x += B::nr) {
        const int64_t used = std::min(B::nr, columns - x);
        T* const panel = b_panels + x * depth;
        pack_b(panel, j + x, used, p, depth);
        // Memory may have held numbers that processors multiply slowly.
        for (int64_t q = 0; q < (used < B::nr ? depth : 0); q++) {
          std::fill(panel + q * B::nr + used, panel + (q + 1) * B::nr, T(0));
        }
      }
      for (int64_t i = 0; i < m; i += B::m_step) {
        const int64_t rows = std::min(B::m_step, m - i);
        multiply_panels<T>(rows, columns, depth, rows_of_a(i, rows, p, depth), b_panels,
                           c + i * ldc + j, ldc, accumulate || p > 0);
      }
    }
  }
}

// The same with A packed on the way: pack_a as for pack_rows.
template <class T, class PackA, class PackB>
void gemm_blocked(int64_t m, int64_t n, int64_t k, const PackA& pack_a, const PackB& pack_b, T* c,
                  int64_t ldc, bool accumulate) {
  using B = GemmBlocks<T>;
  const Scratch<T> a_panels(std::min(m, B::m_step) * std::min(k, B::k_step) + B::width);
  const auto rows_of_a = [&](int64_t i, int64_t rows, int64_t p, int64_t depth) {
    pack_rows(a_panels.data(), i, rows, p, depth, pack_a);
    return a_panels.data();
  };
  gemm_panels(m, n, k, rows_of_a, pack_b, c, ldc, accumulate);
}

// All of A packed at once, for many products: `dst` holds m * k elements and a vector more.
template <class T, class PackA>
void pack_all(T* dst, int64_t m, int64_t k, const PackA& pack_a) {
  using B = GemmBlocks<T>;
  for (int64_t p = 0; p < k; p += B::k_step) {
    const int64_t depth = std::min(B::k_step, k - p);
    for (int64_t i = 0; i < m; i += B::m_step) {
      pack_rows(dst + p * m + i * depth, i, std::min(B::m_step, m - i), p, depth, pack_a);
    }
  }
}

// A square of memory, transposed: lane i of r[j] is at(i)[j].
template <class T, class At>
inline __attribute__((always_inline)) void load_transposed(typename Simd<T>::V (&r)[Simd<T>::width],
                                                           const At& at) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (std::is_same_v<decltype(at(0)), const float*>) {
    // Rows come in halves, two in a vector, so that nothing crosses the middle of vectors later.
#pragma GCC unroll 2
    for (int h = 0; h < 8; h += 4) {
      __m256 x[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) {
        x[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at(i) + h)),
                                    _mm_loadu_ps(at(i + 4) + h), 1);
      }
      const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(x[0], x[1]));
      const __m256d b = _mm256_castps_pd(_mm256_unpackhi_ps(x[0], x[1]));
      const __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(x[2], x[3]));
      const __m256d d = _mm256_castps_pd(_mm256_unpackhi_ps(x[2], x[3]));
      r[h] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
      r[h + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
      r[h + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
      r[h + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
    }
    return;
  }
#endif
#pragma GCC unroll 16
  for (int i = 0; i < Simd<T>::width; i++) {
    r[i] = Simd<T>::load(at(i));
  }
  transpose<T>(r);
}

// The same of a part of a square, with zeros beside it.
template <class T, class At>
inline __attribute__((always_inline)) void load_transposed(typename Simd<T>::V (&r)[Simd<T>::width],
                                                           int64_t rows, int64_t columns,
                                                           const At& at) {
  constexpr int64_t w = Simd<T>::width;
  if (rows == w && columns == w) {
    load_transposed<T>(r, at);
    return;
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < w; i++) {
    r[i] = i < rows ? load_some(at(i), columns) : Simd<T>::zero();
  }
  transpose<T>(r);
}

// dst[q * step + r] = from[r * row + q] * factor for r < rows <= width and q < k; lanes up to the
// width are written, so that a later row of dst, or padding, must follow.
template <class S, class T>
void transpose_pack(T* dst, int64_t step, const S* from, int64_t row, int64_t rows, int64_t k,
                    T factor) {
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  const typename V::V factors = V::set1(factor);
  for (int64_t q = 0; q < k; q += w) {
    const int64_t n = std::min(w, k - q);
    typename V::V block[w];
    // What stands in lanes behind the rows, the next row of dst overwrites where these are short.
    const bool spoils = step < w;
    load_transposed<T>(block, spoils ? w : rows, n,
                       [&](int64_t r) { return from + std::min(r, rows - 1) * row + q; });
    for (int64_t i = 0; i < n; i++) {
      V::store(dst + (q + i) * step, V::mul(factors, block[i]));
    }
  }
}

// Columns of a panel of B.
template <class T>
constexpr int64_t lanes = GemmBlocks<T>::nr;

// A panel of B whose lanes are rows of memory: dst[p][lane] = from[lane * row + p] * factor.
template <class S, class T>
void pack_lanes(T* dst, const S* from, int64_t row, int64_t rows, int64_t k, T factor) {
  constexpr int64_t w = Simd<T>::width;
  for (int64_t x = 0; x < lanes<T>; x += w) {
    const int64_t n = std::clamp<int64_t>(rows - x, 0, w);
    transpose_pack(dst + x, lanes<T>, from + (n == 0 ? 0 : x * row), row, n, k, factor);
  }
}

// Panels of B that hold rows as they lie: of n columns and `depth` rows, zero from `rows` on.
template <class S, class T>
void pack_rows_of_b(T* dst, const S* from, int64_t row, int64_t rows, int64_t depth, int64_t n,
                    T factor) {
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  const typename V::V factors = V::set1(factor);
  for (int64_t j = 0; j < n; j += lanes<T>) {
    for (int64_t q = 0; q < depth; q++) {
      for (int64_t x = 0; x < lanes<T>; x += w) {
        const int64_t here = q < rows ? std::clamp<int64_t>(n - j - x, 0, w) : 0;
        const auto v =
            here == 0 ? V::zero() : V::mul(factors, load_some(from + q * row + j + x, here));
        V::store(dst + x, v);
      }
      dst += lanes<T>;
    }
  }
}

// Panels of A out of memory, converted to the compute type and multiplied by alpha.
template <class S, class T>
struct PackA {
  const S* a;
  int64_t row;
  int64_t col;
  T alpha;
  void operator()(T* dst, int64_t i, int64_t rows, int64_t p, int64_t k) const {
    const S* from = a + i * row + p * col;
    if (col == 1) {
      // The last vector of rows first: what it writes too far, the others overwrite.
      constexpr int64_t w = Simd<T>::width;
      for (int64_t r = (rows - 1) / w * w; r >= 0; r -= w) {
        transpose_pack(dst + r, rows, from + r * row, row, std::min(rows - r, w), k, alpha);
      }
      return;
    }
    for (int64_t q = 0; q < k; q++) {
      for (int64_t r = 0; r < rows; r++) {
        dst[q * rows + r] = static_cast<T>(from[r * row + q * col]) * alpha;
      }
    }
  }
};

}  // namespace rushlight::cpu::RL_ISA
