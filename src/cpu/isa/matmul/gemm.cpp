// The blocked product of cpu/gemm.cpp: factors are brought into panels where that pays, else read
// in place. Complex matrices are real ones of twice the size: a row of A as it lies, (re, im, re,
// im ...), times rows (re, im) and (-im, re) of B gives a row of C as it lies.
#include "cpu/gemm_kernels.h"
#include "cpu/isa/matmul/gemm_engine.h"
#include "kernels/read_element.h"

namespace rushlight::cpu::RL_ISA {
namespace {

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

// Sums that an element of S takes.
template <class S>
constexpr int64_t parts = is_complex_v<S> ? 2 : 1;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class S>
sum_t<S> number(const Scalar& x) {
  if constexpr (std::is_unsigned_v<sum_t<S>>) {
    return static_cast<sum_t<S>>(x.as<int64_t>());
  } else {
    return x.as<sum_t<S>>();
  }
}

// ---- panels ----

// to[q * ld + r] = from[r * row + q] for r < rows and q < columns.
template <class S, class T>
void transposed_copy(T* to, int64_t ld, const S* from, int64_t row, int64_t rows, int64_t columns) {
  if constexpr (is_integer_v<S> || std::is_same_v<S, bool>) {
    for (int64_t q = 0; q < columns; q++) {
      for (int64_t r = 0; r < rows; r++) {
        to[q * ld + r] = static_cast<T>(read_element(from + r * row + q));
      }
    }
  } else {
    using V = Simd<T>;
    constexpr int64_t w = V::width;
    for (int64_t q = 0; q < columns; q += w) {
      const int64_t n = std::min(w, columns - q);
      for (int64_t r = 0; r < rows; r += w) {
        const int64_t m = std::min(w, rows - r);
        typename V::V block[w];
#pragma GCC unroll 16
        for (int64_t i = 0; i < w; i++) {
          block[i] = i < m ? load_some(from + (r + i) * row + q, n) : V::zero();
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
    transposed_copy(to, ld, from, row, rows, columns);
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

// Panel of A: `rows` rows of `depth` elements.
template <class S, class T>
void pack_a(T* to, const S* from, const Matrices& a, int64_t rows, int64_t depth) {
  if constexpr (is_complex_v<S>) {
    for (int64_t p = 0; p < depth; p++) {
      for (int64_t r = 0; r < rows; r++) {
        const S x = from[r * a.row + p * a.col];
        to[2 * p * rows + r] = x.re;
        to[(2 * p + 1) * rows + r] = x.im;
      }
    }
  } else {
    copy_panel(to, rows, from, a.row, a.col, rows, depth);
  }
}

// Panel of B: `columns` columns of `depth` elements, zeros beside them. Complex ones times alpha,
// which their sums, of real numbers, could not take later.
template <class S, class T>
void pack_b(T* to, const S* from, const Matrices& b, int64_t columns, int64_t depth,
            const Scalar& alpha) {
  constexpr int64_t nr = GemmBlocks<T>::nr;
  if (columns * parts<S> < nr) {
    std::fill_n(to, depth * parts<S> * nr, T(0));
  }
  if constexpr (is_complex_v<S>) {
    const S factor = alpha.as<S>();
    for (int64_t p = 0; p < depth; p++) {
      T* const line = to + 2 * p * nr;
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

// ---- tiles ----

template <class T, int vectors, size_t... I>
constexpr auto kernel_table(std::index_sequence<I...>) {
  return std::array{+[](const Micro<T>& z) { micro_kernel<T, I + 1, vectors>(z); }...};
}

// Sums as wide as the dtype go straight to the result.
template <class S>
constexpr bool goes_to_result = sizeof(real_t<S>) == sizeof(sum_t<S>) && !std::is_same_v<S, bool>;

// The result out of sums that are wider: rounded once.
template <class S, class T>
void finish_rows(const Gemm& g, const T* sums) {
  const T alpha = number<S>(g.alpha);
  const T beta = number<S>(g.beta);
  const S* const bias = static_cast<const S*>(g.bias);
  for (int64_t i = 0; i < g.m; i++) {
    S* const to = static_cast<S*>(g.c.data) + i * g.c.row;
    const T* const from = sums + i * g.n;
    for (int64_t j = 0; j < g.n; j++) {
      T sum = alpha * from[j];
      if (bias != nullptr) {
        sum += static_cast<T>(read_element(bias + j));
      } else if (beta != T(0)) {
        sum += beta * static_cast<T>(read_element(to + j));
      }
      to[j] = convert<S>(sum);
    }
  }
}

template <class S>
void blocked_typed(const Gemm& g, bool a_in_place, bool b_in_place) {
  using T = sum_t<S>;
  using B = GemmBlocks<T>;
  constexpr int64_t w = B::width;
  constexpr auto row_counts = std::make_index_sequence<B::max_rows>();
  static constexpr auto one_vector = kernel_table<T, 1>(row_counts);
  static constexpr auto two_vectors = kernel_table<T, 2>(row_counts);
  // In units of T, of which a complex number is two.
  const int64_t n = g.n * parts<S>;
  const int64_t k = g.k * parts<S>;
  const int64_t k_step = std::min(k, B::k_step);
  const int64_t b_columns = ceil_div(n, B::nr) * B::nr;
  const Scratch<T> a_panel(a_in_place ? 0 : B::max_rows * k_step);
  const Scratch<T> b_panels(b_in_place ? k_step * (b_columns - n == 0 ? 0 : B::nr)
                                       : k_step * b_columns);
  const Scratch<T> sums(goes_to_result<S> ? 0 : g.m * n);
  const S* const a = static_cast<const S*>(g.a.data);
  const S* const b = static_cast<const S*>(g.b.data);
  T* c = sums;
  int64_t c_row = n;
  const T* from = nullptr;  // what the first step adds
  int64_t from_row = 0;
  Micro<T> z{};
  z.alpha = T(1);
  T beta = T(1);
  if constexpr (goes_to_result<S>) {
    c = static_cast<T*>(g.c.data);
    c_row = g.c.row * parts<S>;
    if (g.bias != nullptr) {
      from = static_cast<const T*>(g.bias);
    } else if (!g.beta.equal(0)) {
      from = c;
      from_row = c_row;
    }
    if constexpr (!is_complex_v<S>) {
      z.alpha = number<S>(g.alpha);
      beta = g.bias != nullptr ? T(1) : number<S>(g.beta);
    }
  }
  z.c_row = c_row;
  // Panels of A are nearly equal.
  const int64_t panels = ceil_div(g.m, B::max_rows);
  const auto start = [&](int64_t panel) { return g.m * panel / panels; };
  for (int64_t p = 0; p == 0 || p < k; p += B::k_step) {
    z.k = std::min(k_step, k - p);
    z.beta = p == 0 ? beta : T(1);
    z.from_row = p == 0 ? from_row : c_row;
    const int64_t depth = z.k / parts<S>;
    const S* const a_step = a + p / parts<S> * g.a.col;
    const S* const b_step = b + p / parts<S> * g.b.row;
    // The last columns of B are copied in any case: whole vectors would end behind the matrix.
    const int64_t first_packed = b_in_place ? n / B::nr * B::nr : 0;
    for (int64_t j = first_packed; j < n; j += B::nr) {
      pack_b(b_panels + (j - first_packed) * z.k, b_step + j / parts<S> * g.b.col, g.b,
             std::min(B::nr, n - j) / parts<S>, depth, g.alpha);
    }
    for (int64_t panel = 0; panel < panels; panel++) {
      const int64_t i = start(panel);
      const int64_t rows = start(panel + 1) - i;
      if (a_in_place) {
        z.a = reinterpret_cast<const T*>(a_step + i * g.a.row);
        z.a_row = g.a.row * parts<S>;
        z.a_col = g.a.col;
      } else {
        pack_a<S, T>(a_panel, a_step + i * g.a.row, g.a, rows, depth);
        z.a = a_panel;
        z.a_row = 1;
        z.a_col = rows;
      }
      for (int64_t j = 0; j < n; j += B::nr) {
        z.columns = std::min(B::nr, n - j);
        if (j < first_packed) {
          z.b = reinterpret_cast<const T*>(b_step) + j;
          z.b_row = g.b.row;
        } else {
          z.b = b_panels + (j - first_packed) * z.k;
          z.b_row = B::nr;
        }
        z.c = c + i * c_row + j;
        z.from = p > 0 ? z.c : from == nullptr ? nullptr : from + i * from_row + j;
        (z.columns <= w ? one_vector : two_vectors)[rows - 1](z);
      }
    }
  }
  if constexpr (!goes_to_result<S>) {
    finish_rows<S, T>(g, sums.data());
  }
}

GemmBlock block(ScalarType dtype) {
  return visit_dtype<set_all>("matmul", dtype, [](auto tag) -> GemmBlock {
    using S = typename decltype(tag)::type;
    using B = GemmBlocks<sum_t<S>>;
    return {B::max_rows, B::nr / parts<S>, goes_to_result<S>};
  });
}

void blocked(const Gemm& tile, bool a_in_place, bool b_in_place) {
  visit_dtype<set_all>("matmul", tile.dtype, [&](auto tag) {
    blocked_typed<typename decltype(tag)::type>(tile, a_in_place, b_in_place);
  });
}

}  // namespace

const BlockedKernels blocked_kernels = {block, blocked};

}  // namespace rushlight::cpu::RL_ISA
