// The products that attention is made of, and the forms of what they read. A product is C = A @ B:
// rows of A are keys, or elements of keys and values, and columns of B are the `lanes` of a panel.
// `FloatProducts` multiply what any dtype was converted to, `PairProducts` bfloat16 as it is, by
// AMX.
#pragma once

#include "cpu/isa/matmul/gemm_engine.h"
#if defined(__AVX512F__)
#include "cpu/isa/matmul/amx_pairs.h"
#endif

namespace rushlight::cpu::RL_ISA::attention {

// Panels of queries that meet a block of keys while it is in the second-level cache.
inline constexpr int64_t panels_together = 4;

template <class Input>
struct FloatProducts {
  using S = Input;
  using T = compute_t<S>;
  using Element = T;
  static constexpr int64_t nr = lanes<T>;
  // Keys in a block at most: its scores stay in the first-level cache.
  static constexpr int64_t key_block = 112;
  // Whether queries are scaled when they are brought into panels, or else their scores.
  static constexpr bool scales_queries = true;
  // Whether a weight of zero times a value that is not finite may be asked for by itself.
  static constexpr bool wants_finite_values = false;

  // ---- forms ----

  // Elements that A of so many rows and columns takes, B of so many rows and a panel of columns,
  // and B of any columns.
  static int64_t a_elements(int64_t rows, int64_t k) { return rows * k + Simd<T>::width; }
  static int64_t panel_elements(int64_t k) { return k * nr; }
  static int64_t b_elements(int64_t depth, int64_t n) { return depth * ((n + nr - 1) / nr * nr); }

  // A[i, p] = from[i * row + p]
  static void put_rows(T* to, const S* from, int64_t row, int64_t rows, int64_t k) {
    pack_rows(to, 0, rows, 0, k, PackA<S, T>{from, row, 1, T(1)});
  }
  // A[i, p] = from[p * row + i]
  static void put_columns(T* to, const S* from, int64_t row, int64_t rows, int64_t k) {
    pack_rows(to, 0, rows, 0, k, PackColumns{from, row, rows});
  }
  // B[p, lane] = from[lane * row + p] * factor, of `rows` lanes, and zero in the others
  static void put_lanes(T* to, const S* from, int64_t row, int64_t rows, int64_t k, T factor) {
    pack_lanes(to, from, row, rows, k, factor);
  }
  // B[q, j] = from[q * row + j] * factor, and zero from q = `rows` on
  static void put_panels(T* to, const S* from, int64_t row, int64_t rows, int64_t depth, int64_t n,
                         T factor) {
    pack_rows_of_b(to, from, row, rows, depth, n, factor);
  }

  // ---- products ----

  // Scratch of one thread, for blocks of so many keys.
  explicit FloatProducts(int64_t block) : transposed_(block * panels_together * nr + nr) {}

  // c[m x nr] = A @ panel, of the rows that begin before `used` at least
  void multiply(int64_t m, int64_t used, int64_t k, const T* a, const T* panel, T* c) const {
    times_panel(m, used, k, k, a, panel, c, false);
  }
  // c[m x nr] += A @ weights, where A has `columns` columns and `k` of them count
  void add_weighted(int64_t m, int64_t columns, int64_t k, const T* a, const T* weights,
                    T* c) const {
    times_panel(m, m, columns, k, a, weights, c, true);
  }
  // c[keys x n] += A @ B, where the columns of A are the lanes of `count` panels of weights, `step`
  // apart
  void add_of_lanes(int64_t keys, int64_t n, int64_t count, const T* weights, int64_t step,
                    const T* b, T* c) const {
    const int64_t depth = count * nr;
    pack_rows(transposed_.data(), 0, keys, 0, depth, PackPanels{weights, step});
    multiply_panels<T>(keys, n, depth, transposed_, b, c, n, true);
  }

 private:
  struct PackColumns {
    const S* from;
    int64_t row;
    int64_t width;  // of a row: nothing behind it is read
    void operator()(T* dst, int64_t i, int64_t rows, int64_t p, int64_t k) const {
      constexpr int64_t w = Simd<T>::width;
      for (int64_t q = 0; q < k; q++) {
        const S* x = from + (p + q) * row + i;
        T* to = dst + q * rows;
        int64_t r = 0;
        for (; r < rows && i + r + w <= width; r += w) {
          Simd<T>::store(to + r, Simd<T>::load(x + r));  // too far: overwritten by the next row
        }
        for (; r < rows; r++) {
          to[r] = static_cast<T>(x[r]);
        }
      }
    }
  };

  // Panels of A whose columns are the lanes of several panels: A[key, p * nr + lane].
  struct PackPanels {
    const T* from;
    int64_t step;
    void operator()(T* dst, int64_t i, int64_t rows, int64_t, int64_t k) const {
      for (int64_t p = 0; p * nr < k; p++) {
        const PackA<T, T> one{from + p * step, nr, 1, T(1)};
        one(dst + p * nr * rows, i, rows, 0, nr);
      }
    }
  };

  // c[m x nr] = (accumulate ? c : 0) + A @ panel, for the row panels that begin before `used`. A
  // was packed with m rows and `packed` columns, of which the first k count.
  static void times_panel(int64_t m, int64_t used, int64_t packed, int64_t k, const T* a,
                          const T* panel, T* c, bool accumulate) {
    using B = GemmBlocks<T>;
    static constexpr auto kernels = micro_kernels<T>(std::make_index_sequence<B::max_rows>());
    const int64_t panels = (m + B::max_rows - 1) / B::max_rows;
    int64_t i = 0;
    for (int64_t p = 0; p < panels && i < used; p++) {
      const int64_t rows = m * (p + 1) / panels - i;
      kernels[rows - 1](k, a + i * packed, panel, c + i * B::nr, B::nr, accumulate);
      i += rows;
    }
  }

  Scratch<T> transposed_;
};

#if defined(__AVX512F__)

// Terms lie in pairs, whole registers of 16, with zeros behind the last. Weights are two numbers of
// bfloat16 each, the second what the first leaves out, so that products know 16 bits of them.
class PairProducts {
 public:
  using S = BFloat16;
  using T = float;
  using Element = Pair;
  static constexpr int64_t nr = lanes<float>;
  static constexpr int64_t key_block = 128;
  static constexpr bool scales_queries = false;
  static constexpr bool wants_finite_values = true;  // the second number may be zero

  // ---- forms ----

  static int64_t a_elements(int64_t rows, int64_t k) { return rows * pairs_of(k); }
  static int64_t panel_elements(int64_t k) { return pairs_of(k) * nr; }
  static int64_t b_elements(int64_t depth, int64_t n) {
    return pairs_of(depth) * ((n + nr - 1) / nr * nr);
  }

  static void put_rows(Pair* to, const S* from, int64_t row, int64_t rows, int64_t k) {
    const int64_t room = 2 * pairs_of(k);
    for (int64_t i = 0; i < rows; i++) {
      S* const line = reinterpret_cast<S*>(to) + i * room;
      std::copy_n(from + i * row, k, line);
      std::fill(line + k, line + room, S(0));
    }
  }

  static void put_columns(Pair* to, const S* from, int64_t row, int64_t rows, int64_t k) {
    const int64_t a_row = pairs_of(k);
    for (int64_t p = 0; p < a_row; p += w) {
      for (int64_t i = 0; i < rows; i += w) {
        const int64_t n = std::min(w, rows - i);
        Vector square[w];
        for (int64_t q = 0; q < w; q++) {
          square[q] = pairs_at(from, row, 2 * (p + q), k, i, n);
        }
        transpose<float>(square);
        for (int64_t r = 0; r < n; r++) {
          store(to + (i + r) * a_row + p, square[r]);
        }
      }
    }
  }

  static void put_lanes(Pair* to, const S* from, int64_t row, int64_t rows, int64_t k, float) {
    for (int64_t p = 0; p < pairs_of(k); p += w) {
      const int64_t n = std::clamp<int64_t>(k - 2 * p, 0, 2 * w);
      for (int64_t x = 0; x < nr; x += w) {
        Vector square[w];
        for (int64_t r = 0; r < w; r++) {
          S line[2 * w] = {};
          if (x + r < rows) {
            std::copy_n(from + (x + r) * row + 2 * p, n, line);
          }
          square[r] = Terms<Pair>::load(reinterpret_cast<const Pair*>(line));
        }
        transpose<float>(square);
        for (int64_t q = 0; q < w; q++) {
          store(to + (p + q) * nr + x, square[q]);
        }
      }
    }
  }

  static void put_panels(Pair* to, const S* from, int64_t row, int64_t rows, int64_t depth,
                         int64_t n, float) {
    for (int64_t j = 0; j < n; j += nr) {
      for (int64_t q = 0; q < pairs_of(depth); q++, to += nr) {
        for (int64_t x = 0; x < nr; x += w) {
          const int64_t here = std::clamp<int64_t>(n - j - x, 0, w);
          store(to + x,
                here == 0 ? Simd<float>::zero() : pairs_at(from, row, 2 * q, rows, j + x, here));
        }
      }
    }
  }

  // ---- products ----

  explicit PairProducts(int64_t block)
      : upper_(std::max(pairs_of(block) * nr, block * pairs_of(panels_together * nr))),
        lower_(std::max(pairs_of(block) * nr, block * pairs_of(panels_together * nr))) {}

  void multiply(int64_t, int64_t used, int64_t k, const Pair* a, const Pair* panel, float* c) {
    product(used, nr, pairs_of(k), a, pairs_of(k), panel, c, nr, false);
  }

  void add_weighted(int64_t m, int64_t columns, int64_t k, const Pair* a, const float* weights,
                    float* c) {
    const int64_t pairs = pairs_of(k);
    for (int64_t q = 0; q < pairs; q++) {
      for (int64_t x = 0; x < nr; x += w) {
        const Vector first = 2 * q < k ? load(weights + 2 * q * nr + x) : Simd<float>::zero();
        const Vector second =
            2 * q + 1 < k ? load(weights + (2 * q + 1) * nr + x) : Simd<float>::zero();
        store(upper_ + q * nr + x, Terms<Pair>::join(first, second));
        store(lower_ + q * nr + x, Terms<Pair>::join(rest_of(first), rest_of(second)));
      }
    }
    product(m, nr, pairs, a, pairs_of(columns), upper_, c, nr, true, lower_);
  }

  void add_of_lanes(int64_t keys, int64_t n, int64_t count, const float* weights, int64_t step,
                    const Pair* b, float* c) {
    const int64_t pairs = count * nr / 2;
    for (int64_t p = 0; p < count; p++) {
      for (int64_t i = 0; i < keys; i++) {
        for (int64_t x = 0; x < nr; x += w) {
          const Vector v = load(weights + p * step + i * nr + x);
          const int64_t at = 2 * i * pairs + p * nr + x;
          store_upper(reinterpret_cast<S*>(upper_.data()) + at, v);
          store_upper(reinterpret_cast<S*>(lower_.data()) + at, rest_of(v));
        }
      }
    }
    for (const Pair* const a : {upper_.data(), lower_.data()}) {
      product(keys, n, pairs, a, pairs, b, c, n, true);
    }
  }

 private:
  using Vector = Simd<float>::V;
  static constexpr int64_t w = Simd<float>::width;

  static int64_t pairs_of(int64_t terms) { return (terms + 2 * w - 1) / (2 * w) * w; }
  static Vector load(const float* p) { return Simd<float>::load(p); }
  static void store(Pair* to, Vector pairs) {
    Simd<float>::store(reinterpret_cast<float*>(to), pairs);
  }

  // from[q * row + i] and from[(q + 1) * row + i] side by side, for n lanes i; zero from q = k on.
  static Vector pairs_at(const S* from, int64_t row, int64_t q, int64_t k, int64_t i, int64_t n) {
    const S* const at = from + q * row + i;
    return Terms<Pair>::join(q < k ? load_some(at, n) : Simd<float>::zero(),
                             q + 1 < k ? load_some(at + row, n) : Simd<float>::zero());
  }

  // What the upper half of a number leaves out, rounded to an upper half.
  static Vector rest_of(Vector v) {
    const __m512i upper =
        _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(static_cast<int>(0xffff0000)));
    const Vector rest = Simd<float>::sub(v, _mm512_castsi512_ps(upper));
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(rest), _mm512_set1_epi32(0x8000)));
  }
  static void store_upper(S* to, Vector v) {
    const __m512i upper = _mm512_maskz_srli_epi32(0xffff, _mm512_castps_si512(v), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_cvtepi32_epi16(0xffff, upper));
  }

  // c[m x n] = (accumulate ? c : 0) + A @ B + A @ more_b. Rows of A are `a_row` pairs apart, of
  // which the first `pairs` count; B has a panel for each `nr` columns.
  void product(int64_t m, int64_t n, int64_t pairs, const Pair* a, int64_t a_row, const Pair* b,
               float* c, int64_t c_row, bool accumulate, const Pair* more_b = nullptr) {
    for (int64_t i = 0; i < m; i += AmxPairs::most_rows) {
      const int64_t rows = std::min(AmxPairs::most_rows, m - i);
      for (int64_t j = 0; j < n; j += nr) {
        float* const to = c + i * c_row + j;
        amx_.multiply({.k = pairs,
                       .a = a + i * a_row,
                       .a_row = a_row,
                       .a_col = 1,
                       .b = b + j * pairs,
                       .b_row = nr,
                       .c = to,
                       .c_row = c_row,
                       .columns = std::min(nr, n - j),
                       .alpha = 1,
                       .from = accumulate ? to : nullptr,
                       .from_row = c_row,
                       .beta = 1,
                       .numbers = nullptr,
                       .ahead = {}},
                      rows, more_b);
      }
    }
  }

  AmxPairs amx_;
  Scratch<Pair> upper_;
  Scratch<Pair> lower_;
};

#endif

}  // namespace rushlight::cpu::RL_ISA::attention
