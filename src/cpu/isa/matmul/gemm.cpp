// The blocked product of cpu/gemm.cpp: factors are brought into panels where that pays, else read
// in place. Complex matrices are real ones of twice the size: a row of A as it lies, (re, im, re,
// im ...), times rows (re, im) and (-im, re) of B gives a row of C as it lies.
#include "cpu/gemm_kernels.h"
#if defined(__AVX512F__)
#include "cpu/isa/matmul/amx_pairs.h"
#endif
#include "cpu/isa/matmul/pairs.h"
#include "kernels/read_element.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Sums that an element of S takes.
template <class S>
constexpr int64_t parts = is_complex_v<S> ? 2 : 1;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// E that k elements of S are multiplied as, and elements that n such E hold.
template <class S, class E>
int64_t terms_of(int64_t k) {
  return std::is_same_v<E, Pair> ? ceil_div(k, 2) : k * parts<S>;
}
template <class S, class E>
int64_t elements_of(int64_t n) {
  return std::is_same_v<E, Pair> ? 2 * n : n / parts<S>;
}

template <class S>
sum_t<S> number(const Scalar& x) {
  if constexpr (std::is_unsigned_v<sum_t<S>>) {
    return static_cast<sum_t<S>>(x.as<int64_t>());
  } else {
    return x.as<sum_t<S>>();
  }
}

// ---- panels ----

// to[q * ld + r] = what at(r, q) points to, for r < rows and q < columns.
template <class S, class T, class At>
void copy_transposed(T* to, int64_t ld, int64_t rows, int64_t columns, const At& at) {
  if constexpr (is_integer_v<S> || std::is_same_v<S, bool>) {
    for (int64_t q = 0; q < columns; q++) {
      for (int64_t r = 0; r < rows; r++) {
        to[q * ld + r] = static_cast<T>(read_element(at(r, q)));
      }
    }
  } else {
    using V = Simd<T>;
    constexpr int64_t w = V::width;
    constexpr int64_t ahead = 4 * w;
    for (int64_t q = 0; q < columns; q += w) {
      const int64_t n = std::min(w, columns - q);
      for (int64_t r = 0; r < rows; r += w) {
        const int64_t m = std::min(w, rows - r);
        typename V::V block[w];
        if (n == w && m == w) {
#pragma GCC unroll 16
          for (int64_t i = 0; i < w; i++) {
            __builtin_prefetch(at(r + i, q + ahead));
          }
          load_transposed<T>(block, [&](int64_t i) { return at(r + i, q); });
#pragma GCC unroll 16
          for (int64_t i = 0; i < w; i++) {
            V::store(to + (q + i) * ld + r, block[i]);
          }
          continue;
        }
#pragma GCC unroll 16
        for (int64_t i = 0; i < w; i++) {
          if (i < m) {
            __builtin_prefetch(
                at(r + i, q + ahead));  // so many rows the processor does not foresee
            block[i] = load_some(at(r + i, q), n);
          } else {
            block[i] = V::zero();
          }
        }
        transpose<T>(block);
        if (n == w) {
#pragma GCC unroll 16
          for (int64_t i = 0; i < w; i++) {
            store_some(to + (q + i) * ld + r, block[i], m);
          }
        } else {
          for (int64_t i = 0; i < n; i++) {
            store_some(to + (q + i) * ld + r, block[i], m);
          }
        }
      }
    }
  }
}

// to[q * ld + r] = from[r * row + q * col]
template <class S, class T>
void copy_panel(T* to, int64_t ld, const S* from, int64_t row, int64_t col, int64_t rows,
                int64_t columns) {
  if (col == 1) {
    copy_transposed<S>(to, ld, rows, columns,
                       [&](int64_t r, int64_t q) { return from + r * row + q; });
    return;
  }
  for (int64_t q = 0; q < columns; q++) {
    T* const line = to + q * ld;
    const S* const x = from + q * col;
    if constexpr (is_real_float_v<S>) {
      if (row == 1) {
        for_vectors<T>(rows,
                       [&](int64_t r, int64_t n) { store_some(line + r, load_some(x + r, n), n); });
        continue;
      }
    }
    if (row == 1) {
      for (int64_t r = 0; r < rows; r++) {
        line[r] = static_cast<T>(read_element(x + r));
      }
    } else {
      for (int64_t r = 0; r < rows; r++) {
        line[r] = static_cast<T>(read_element(x + r * row));
      }
    }
  }
}

#if defined(__AVX512F__)
// to[q * ld + r] = from[r * row + 2 * q * col] and the one after it, a zero where there is none.
template <class S>
void copy_panel(Pair* to, int64_t ld, const S* from, int64_t row, int64_t col, int64_t rows,
                int64_t columns) {
  int64_t q = 0;
  if (col == 1) {
    // Transposing looks at no bits.
    q = columns / 2;
    copy_transposed<float>(reinterpret_cast<float*>(to), ld, rows, q, [&](int64_t r, int64_t p) {
      return reinterpret_cast<const float*>(from + r * row + 2 * p);
    });
  }
  for (; 2 * q < columns; q++) {
    Pair* const line = to + q * ld;
    const S* const x = from + 2 * q * col;
    const bool both = 2 * q + 1 < columns;
    if (row == 1 && both) {
      for_vectors<float>(rows, [&](int64_t r, int64_t n) {
        Terms<Pair>::store_pairs(line + r, load_some(x + r, n), load_some(x + r + col, n), n);
      });
      continue;
    }
    for (int64_t r = 0; r < rows; r++) {
      const uint32_t second = both ? x[r * row + col].bits : 0;
      line[r].bits = x[r * row].bits | second << 16;
    }
  }
}
#endif

// Rows of A one after the other: to[r * ld + q] = from[r * row + q * col], converted.
template <class S, class E>
void copy_rows(E* to, int64_t ld, const S* from, int64_t row, int64_t col, int64_t rows,
               int64_t depth) {
  using T = typename Terms<E>::Sum;
  constexpr bool pairs = std::is_same_v<E, Pair>;
  constexpr bool as_it_lies =
      pairs || (sizeof(S) == sizeof(E) * parts<S> && !std::is_same_v<S, bool>);
  constexpr int64_t w = Simd<T>::width;
  if constexpr (is_real_float_v<S>) {
    if (row == 1 && col != 1) {
      // Squares of columns, transposed: a stretch of each column, which may be pages apart.
      E block[w * w];
      const int64_t step = elements_of<S, E>(w);
      for (int64_t q = 0; q < depth; q += step) {
        const int64_t n = std::min(step, depth - q);
        for (int64_t r = 0; r < rows; r += w) {
          const int64_t m = std::min(w, rows - r);
          copy_panel(block, w, from + r + q * col, 1, col, m, n);
          copy_transposed<T>(
              reinterpret_cast<T*>(to + r * ld + terms_of<S, E>(q)), ld, terms_of<S, E>(n), m,
              [&](int64_t i, int64_t j) { return reinterpret_cast<const T*>(block + i * w + j); });
        }
      }
      return;
    }
  }
  for (int64_t r = 0; r < rows; r++) {
    E* const line = to + r * ld;
    const S* const x = from + r * row;
    if (as_it_lies && col == 1) {
      if (pairs && depth % 2 == 1) {
        line[depth / 2] = E{};
      }
      if (depth > 0) {  // else `x` may be null
        std::memcpy(static_cast<void*>(line), x, depth * sizeof(S));
      }
      continue;
    }
    if constexpr (is_complex_v<S>) {
      for (int64_t q = 0; q < depth; q++) {
        line[2 * q] = x[q * col].re;
        line[2 * q + 1] = x[q * col].im;
      }
    } else if constexpr (pairs) {
      for (int64_t q = 0; q < depth; q += 2) {
        const uint32_t second = q + 1 < depth ? x[(q + 1) * col].bits : 0;
        line[q / 2].bits = x[q * col].bits | second << 16;
      }
    } else if (col == 1) {
      if constexpr (is_real_float_v<S>) {
        for_vectors<E>(depth,
                       [&](int64_t q, int64_t n) { store_some(line + q, load_some(x + q, n), n); });
      } else {
        for (int64_t q = 0; q < depth; q++) {
          line[q] = static_cast<E>(read_element(x + q));
        }
      }
    } else {
      for (int64_t q = 0; q < depth; q++) {
        line[q] = static_cast<E>(read_element(x + q * col));
      }
    }
  }
}

// Panel of B: `columns` columns of `depth` elements, zeros beside them. Complex ones times alpha,
// which their sums, of real numbers, could not take later.
template <class S, class E>
void pack_b(E* to, const S* from, const Matrices& b, int64_t columns, int64_t depth,
            const Scalar& alpha) {
  constexpr int64_t nr = GemmBlocks<typename Terms<E>::Sum>::nr;
  if (columns * parts<S> < nr) {
    std::fill_n(to, terms_of<S, E>(depth) * nr, E{});
  }
  if constexpr (is_complex_v<S>) {
    const S factor = alpha.as<S>();
    for (int64_t p = 0; p < depth; p++) {
      E* const line = to + 2 * p * nr;
      for (int64_t j = 0; j < columns; j++) {
        const S x = factor * from[p * b.row + j * b.col];
        line[2 * j] = x.re;
        line[2 * j + 1] = x.im;
        line[nr + 2 * j] = -x.im;
        line[nr + 2 * j + 1] = x.re;
      }
    }
  } else {
    copy_panel(to, nr, from, b.col, b.row, columns, depth);
  }
}

// Panels of B whose columns lie side by side, `panel` elements apart. Rows may be pages apart: a
// stretch of each serves all panels, and the processor does not foresee the next one.
template <class S, class E>
void pack_stretches(E* to, int64_t panel, const S* from, int64_t row, int64_t columns,
                    int64_t depth) {
  if (columns == 0) {
    return;
  }
  using V = Simd<E>;
  constexpr int64_t nr = GemmBlocks<E>::nr;
  constexpr int64_t rows_ahead = 6;
  for (int64_t q = 0; q < depth; q++, from += row, to += nr) {
    E* line = to;
    int64_t j = 0;
    for (; j + nr <= columns; j += nr, line += panel) {
      for (int64_t x = 0; x < nr; x += V::width) {
        if (x * sizeof(S) % 64 == 0) {
          __builtin_prefetch(from + rows_ahead * row + j + x);
        }
        V::store(line + x, V::load(from + j + x));
      }
    }
    for (int64_t x = 0; j < columns && x < nr; x += V::width) {
      const int64_t n = std::clamp<int64_t>(columns - j - x, 0, V::width);
      V::store(line + x, n > 0 ? load_some(from + j + x, n) : V::zero());
    }
  }
}

// All panels of B for `columns` columns and `depth` elements of the sum, `panel` elements apart.
template <class S, class E>
void pack_panels(E* to, int64_t panel, const S* from, const Matrices& b, int64_t columns,
                 int64_t depth, const Scalar& alpha) {
  if constexpr (is_real_float_v<S> && std::is_same_v<E, sum_t<S>>) {
    if (b.col == 1) {
      pack_stretches(to, panel, from, b.row, columns, depth);
      return;
    }
  }
  constexpr int64_t step = GemmBlocks<typename Terms<E>::Sum>::nr / parts<S>;
  for (int64_t j = 0; j < columns; j += step, to += panel) {
    pack_b(to, from + j * b.col, b, std::min(step, columns - j), depth, alpha);
  }
}

// Panels of A whose columns lie in memory as they are: to[i * depth + q * rows + r] =
// from[i + r + q * col] for the `rows` rows from i on. A vector behind them is spoilt.
template <class S, class E>
void pack_columns(E* to, const S* from, int64_t col, int64_t m, int64_t depth) {
  using V = Simd<E>;
  constexpr int64_t w = V::width;
  constexpr int64_t columns_at_once = 32;  // of which a panel has a few elements each
  for (int64_t first = 0; first < depth; first += columns_at_once) {
    const int64_t last = std::min(first + columns_at_once, depth);
    for (int64_t i = 0; i < m; i += GemmBlocks<E>::max_rows) {
      const int64_t rows = std::min(GemmBlocks<E>::max_rows, m - i);
      for (int64_t q = first; q < last; q++) {
        const S* const x = from + q * col + i;
        E* const line = to + i * depth + q * rows;
        if (i + w <= m && rows <= w && q + 1 < depth) {
          V::store(line, V::load(x));  // too far: what follows overwrites it
          continue;
        }
        for (int64_t r = 0; r < rows; r += w) {
          const int64_t n = std::min(w, rows - r);
          store_some(line + r, load_some(x + r, n), n);
        }
      }
    }
  }
}

// ---- tiles ----

template <class E, int vectors, bool fetches, size_t... I>
constexpr auto kernel_table(std::index_sequence<I...>) {
  return std::array{+[](const Micro<E>& z) { micro_kernel<E, I + 1, vectors, fetches>(z); }...};
}

// Sums as wide as the dtype go straight to the result.
template <class S>
constexpr bool goes_to_result = sizeof(real_t<S>) == sizeof(sum_t<S>) && !std::is_same_v<S, bool>;

// The result out of sums that are wider: rounded once.
template <class S, class T>
void finish_rows(const Gemm& g, const T* sums) {
  const T alpha = number<S>(g.alpha);
  const T beta = number<S>(g.beta);
  for (int64_t i = 0; i < g.m; i++) {
    S* const to = static_cast<S*>(g.c.data) + i * g.c.row;
    const T* const from = sums + i * g.n;
    if constexpr (is_real_float_v<S>) {
      using V = Simd<T>;
      for_vectors<T>(g.n, [&](int64_t j, int64_t n) {
        auto sum = V::mul(V::set1(alpha), load_some(from + j, n));
        if (g.bias) {
          const S* const x = g.bias.at<S>(i, j);
          sum = V::add(sum, g.bias.col == 0 ? V::set1(static_cast<T>(*x)) : load_some(x, n));
        } else if (beta != T(0)) {
          sum = V::fma(V::set1(beta), load_some(to + j, n), sum);
        }
        store_some(to + j, sum, n);
      });
    } else {
      for (int64_t j = 0; j < g.n; j++) {
        T sum = alpha * from[j];
        if (g.bias) {
          sum += static_cast<T>(read_element(g.bias.at<S>(i, j)));
        } else if (beta != T(0)) {
          sum += beta * static_cast<T>(read_element(to + j));
        }
        to[j] = convert<S>(sum);
      }
    }
  }
}

// The result where its columns lie gapless, not its rows.
template <class T>
void finish_columns(const Gemm& g, const T* sums) {
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  const typename V::V alpha = V::set1(number<T>(g.alpha));
  const T beta = number<T>(g.beta);
  for (int64_t j = 0; j < g.n; j += w) {
    const int64_t columns = std::min(w, g.n - j);
    for (int64_t i = 0; i < g.m; i += w) {
      const int64_t rows = std::min(w, g.m - i);
      typename V::V block[w];
      load_transposed<T>(block, rows, columns, [&](int64_t r) { return sums + (i + r) * g.n + j; });
      for (int64_t x = 0; x < columns; x++) {
        T* const to = static_cast<T*>(g.c.data) + (j + x) * g.c.col + i;
        auto sum = V::mul(alpha, block[x]);
        if (g.bias) {
          sum = V::add(sum, load_some(g.bias.at<T>(i, j), rows));
        } else if (beta != T(0)) {
          sum = V::fma(V::set1(beta), load_some(to, rows), sum);
        }
        store_some(to, sum, rows);
      }
    }
  }
}

// What comes of S and E: blocks, panels of B, and tiles.
template <class S, class E>
struct BlockSizes {
  using T = typename Terms<E>::Sum;
  using B = GemmBlocks<T>;
  static constexpr bool pairs = std::is_same_v<E, Pair>;
  static constexpr bool like_terms = sizeof(real_t<S>) == sizeof(E) && !std::is_same_v<S, bool>;
  // Rows of A that are copied begin in lines of the first-level cache far from each other.
  static constexpr int64_t a_row = B::k_step + 64 / sizeof(E);

  // Whether copies of A are panels of whole columns.
  static bool packs_columns(const Gemm& g) {
    return B::b_stays && is_real_float_v<S> && g.a.row == 1 && g.a.col != 1;
  }

  // That are multiplied at once.
  static int64_t most_rows() {
#if defined(__AVX512F__)
    if (pairs && has_amx()) {
      return AmxPairs::most_rows;
    }
#endif
    return B::max_rows;
  }

  static GemmBlock block(const Gemm& g) {
    const bool whole_pairs = g.k % 2 == 0 && g.a.row % 2 == 0 && g.a.col == 1;
    return {.rows = most_rows(),
            .columns = B::nr / parts<S>,
            .a_in_place = pairs ? whole_pairs : like_terms && (!is_complex_v<S> || g.a.col == 1),
            .b_in_place = !pairs && like_terms && !is_complex_v<S> && g.b.col == 1,
            .a_in_columns = packs_columns(g),
            .row_bytes =
                ceil_div(terms_of<S, E>(g.k), B::k_step) * a_row * static_cast<int64_t>(sizeof(E)),
            .column_bytes = terms_of<S, E>(g.k) * parts<S> * static_cast<int64_t>(sizeof(E))};
  }

  // All first steps of the sum come before all second ones.
  static void copy_a(const Gemm& g, int64_t first, int64_t last, void* to) {
    const int64_t step = elements_of<S, E>(B::k_step);
    for (int64_t p = 0; p < g.k; p += step) {
      const S* const from = static_cast<const S*>(g.a.data) + first * g.a.row + p * g.a.col;
      if constexpr (is_real_float_v<S> && !pairs) {
        if (packs_columns(g)) {
          const int64_t depth = std::min(step, g.k - p);
          pack_columns(static_cast<E*>(to) + p * g.m + first * depth, from, g.a.col, last - first,
                       depth);
          continue;
        }
      }
      const int64_t line = p / step * g.m + first;
      copy_rows<S, E>(static_cast<E*>(to) + line * a_row, a_row, from, g.a.row, g.a.col,
                      last - first, std::min(step, g.k - p));
    }
  }

  static void copy_b(const Gemm& g, int64_t first, int64_t last, void* to) {
    constexpr int64_t columns = B::nr / parts<S>;
    const int64_t panel = terms_of<S, E>(g.k) * B::nr;
    const int64_t step = elements_of<S, E>(B::k_step);
    const S* const b = static_cast<const S*>(g.b.data) + first * columns * g.b.col;
    const int64_t all = std::min(last * columns, g.n) - first * columns;
    for (int64_t p = 0; p < g.k; p += step) {
      pack_panels(static_cast<E*>(to) + first * panel + terms_of<S, E>(p) * B::nr, panel,
                  b + p * g.b.row, g.b, all, std::min(step, g.k - p), g.alpha);
    }
  }

  static void multiply(const Gemm& g, const GemmFactors& factors) {
    constexpr int64_t w = B::width;
    constexpr auto row_counts = std::make_index_sequence<B::max_rows>();
    static constexpr auto one_vector = kernel_table<E, 1, false>(row_counts);
    static constexpr auto two_vectors = kernel_table<E, 2, false>(row_counts);
    static constexpr auto two_vectors_and_ahead = kernel_table<E, 2, true>(row_counts);
    const int64_t n = g.n * parts<S>;
    const int64_t k = terms_of<S, E>(g.k);
    const int64_t k_step = std::min(k, B::k_step);
    const E* const given_a = static_cast<const E*>(factors.a_copy);
    const E* const given_b = static_cast<const E*>(factors.b_copy);
    // The last columns of B are copied in any case: whole vectors would end behind the matrix.
    const int64_t first_packed = factors.b_in_place ? n / B::nr * B::nr : 0;
    const bool columns_of_a = !factors.a_in_place && packs_columns(g);
    const Scratch<E> a_panel(factors.a_in_place || given_a != nullptr ? 0
                             : columns_of_a                           ? g.m * k_step + w
                                                                      : most_rows() * a_row);
    const Scratch<E> b_panels(
        given_b != nullptr ? 0 : k_step * ceil_div(n - first_packed, B::nr) * B::nr);
    const bool across = g.c.col != 1;
    const Scratch<T> sums(goes_to_result<S> && !across ? 0 : g.m * n);
    const S* const a = static_cast<const S*>(g.a.data);
    const S* const b = static_cast<const S*>(g.b.data);
    T* c = sums;
    int64_t c_row = n;
    const T* from = nullptr;  // what the first step adds
    int64_t from_row = 0;
    const T* numbers = nullptr;  // of rows, which it adds
#if defined(__AVX512F__)
    [[maybe_unused]] AmxPairs by_amx;
#endif
    Micro<E> z{};
    z.alpha = T(1);
    T beta = T(1);
    if (goes_to_result<S> && !across) {
      c = static_cast<T*>(g.c.data);
      c_row = g.c.row * parts<S>;
      if (g.bias && g.bias.col == 0) {
        numbers = g.bias.at<T>(0, 0);
      } else if (g.bias) {
        from = g.bias.at<T>(0, 0);
      } else if (!g.beta.equal(0)) {
        from = c;
        from_row = c_row;
      }
      if constexpr (!is_complex_v<S>) {
        z.alpha = number<S>(g.alpha);
        beta = g.bias ? T(1) : number<S>(g.beta);
      }
    }
    z.c_row = c_row;
    // Panels of A are nearly equal. Where writing the result is what costs, few of its rows at a
    // time do not drive each other out of the first-level cache if they share lines of it.
    const bool far_apart = c_row * static_cast<int64_t>(sizeof(T)) % 4096 != 0;
    const int64_t panels = ceil_div(g.m, k < 8 && !far_apart && !columns_of_a ? 4 : most_rows());
    const auto start = [&](int64_t panel) {
      return columns_of_a ? std::min(panel * most_rows(), g.m) : g.m * panel / panels;
    };
    for (int64_t p = 0; p == 0 || p < k; p += B::k_step) {
      z.k = std::min(k_step, k - p);
      z.beta = p == 0 ? beta : T(1);
      z.from_row = p == 0 ? from_row : c_row;
      const int64_t at = elements_of<S, E>(p);
      const int64_t depth = std::min(elements_of<S, E>(z.k), g.k - at);
      const S* const a_step = a + at * g.a.col;
      const S* const b_step = b + at * g.b.row;
      if (given_b == nullptr) {
        pack_panels(b_panels.data(), z.k * B::nr, b_step + first_packed / parts<S> * g.b.col, g.b,
                    (n - first_packed) / parts<S>, depth, g.alpha);
      }
      if constexpr (is_real_float_v<S> && !pairs) {
        if (columns_of_a && given_a == nullptr) {
          pack_columns(a_panel.data(), a_step, g.a.col, g.m, depth);
        }
      }
      // The rows of a panel of A.
      const auto take_rows = [&](int64_t panel) {
        const int64_t i = start(panel);
        if (columns_of_a) {
          z.a = given_a != nullptr ? given_a + p * factors.rows + (factors.first_row + i) * depth
                                   : a_panel + i * depth;
          z.a_row = 1;
          z.a_col = start(panel + 1) - i;
          return;
        }
        const S* const a_rows = a_step + i * g.a.row;
        if (factors.a_in_place) {
          z.a = reinterpret_cast<const E*>(a_rows);
          z.a_row = terms_of<S, E>(g.a.row);
          z.a_col = pairs ? 1 : g.a.col;
          return;
        }
        z.a = a_panel;
        z.a_row = a_row;
        z.a_col = 1;
        if (given_a != nullptr) {
          z.a = given_a + (p / B::k_step * factors.rows + factors.first_row + i) * a_row;
        } else {
          copy_rows<S, E>(a_panel, a_row, a_rows, g.a.row, g.a.col, start(panel + 1) - i, depth);
        }
      };
      const auto take_columns = [&](int64_t j) {
        z.columns = std::min(B::nr, n - j);
        if (j < first_packed) {
          z.b = reinterpret_cast<const E*>(b_step) + j;
          z.b_row = g.b.row;
        } else {
          z.b = given_b != nullptr ? given_b + (factors.first_column * parts<S> + j) * k + p * B::nr
                                   : b_panels + (j - first_packed) * z.k;
          z.b_row = B::nr;
        }
      };
      const auto multiply_block = [&](int64_t panel, int64_t j, bool fetches) {
        const int64_t i = start(panel);
        const int64_t rows = start(panel + 1) - i;
        z.c = c + i * c_row + j;
        z.from = p > 0 ? z.c : from == nullptr ? nullptr : from + i * from_row + j;
        z.numbers = p > 0 || numbers == nullptr ? nullptr : numbers + i;
#if defined(__AVX512F__)
        if constexpr (pairs) {
          if (has_amx()) {
            by_amx.multiply(z, rows);
            return;
          }
        }
#endif
        const auto& kernels = z.columns <= w ? one_vector
                              : fetches      ? two_vectors_and_ahead
                                             : two_vectors;
        kernels[rows - 1](z);
      };
      if (B::b_stays && (factors.a_in_place || given_a != nullptr || columns_of_a)) {
        for (int64_t j = 0; j < n; j += B::nr) {
          take_columns(j);
          for (int64_t panel = 0; panel < panels; panel++) {
            take_rows(panel);
            multiply_block(panel, j, false);
          }
        }
        continue;
      }
      for (int64_t panel = 0; panel < panels; panel++) {
        take_rows(panel);
        // The next panel, which may be the first one of the next step, is on its way meanwhile: the
        // processor foresees no short rows, and drops what is fetched all at once.
        const bool last = panel + 1 == panels;
        const int64_t next_p = last ? p + B::k_step : p;
        const bool fetches = z.a_col == 1 && next_p < k;
        if (fetches) {
          const int64_t row = start(last ? 0 : panel + 1);
          const E* const next =
              given_a != nullptr
                  ? given_a + (next_p / B::k_step * factors.rows + factors.first_row + row) * a_row
                  : reinterpret_cast<const E*>(a + elements_of<S, E>(next_p) + row * g.a.row);
          z.ahead = {.data = reinterpret_cast<const char*>(next),
                     .count = start(last ? 1 : panel + 2) - row,
                     .row = given_a != nullptr ? a_row * static_cast<int64_t>(sizeof(E))
                                               : g.a.row * static_cast<int64_t>(sizeof(S))};
        }
        for (int64_t j = 0; j < n; j += B::nr) {
          take_columns(j);
          // So is the next panel of a copy of B, while the first rows of A take this one.
          const bool fetches_a = fetches && j == 0;
          const bool fetches_b = panel == 0 && given_b != nullptr && !fetches_a && j + B::nr < n;
          if (fetches_b) {
            z.ahead = {reinterpret_cast<const char*>(z.b + k * B::nr), INT64_MAX,
                       B::nr * static_cast<int64_t>(sizeof(E))};
          }
          multiply_block(panel, j, fetches_a || fetches_b);
        }
      }
    }
    if constexpr (std::is_floating_point_v<S>) {
      if (across) {
        finish_columns(g, sums.data());
      }
    } else if constexpr (!goes_to_result<S>) {
      finish_rows<S, T>(g, sums.data());
    }
  }
};

// Calls f(BlockSizes<S, E>()).
template <class F>
auto visit_terms(const Gemm& g, [[maybe_unused]] bool pairs, const F& f) {
#if defined(__AVX512F__)
  if (pairs) {
    return f(BlockSizes<BFloat16, Pair>());
  }
#endif
  return visit_dtype<set_all>("matmul", g.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    return f(BlockSizes<S, sum_t<S>>());
  });
}

bool has_pairs(ScalarType dtype) {
#if defined(__AVX512F__)
  __builtin_cpu_init();
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has && dtype == kBFloat16;
#else
  static_cast<void>(dtype);
  return false;
#endif
}

GemmBlock block(const Gemm& g, bool pairs) {
  return visit_terms(g, pairs, [&](auto blocked) { return blocked.block(g); });
}

void copy_a(const Gemm& g, bool pairs, int64_t first, int64_t last, void* to) {
  visit_terms(g, pairs, [&](auto blocked) { blocked.copy_a(g, first, last, to); });
}

void copy_b(const Gemm& g, bool pairs, int64_t first, int64_t last, void* to) {
  visit_terms(g, pairs, [&](auto blocked) { blocked.copy_b(g, first, last, to); });
}

void multiply(const Gemm& tile, bool pairs, const GemmFactors& factors) {
  visit_terms(tile, pairs, [&](auto blocked) { blocked.multiply(tile, factors); });
}

}  // namespace

const BlockedKernels blocked_kernels = {has_pairs, block, copy_a, copy_b, multiply};

}  // namespace rushlight::cpu::RL_ISA
