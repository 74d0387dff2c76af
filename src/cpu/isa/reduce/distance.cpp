// Distances between all rows of two matrices, and their gradient. The rows of the second are
// transposed, so that vectors run over pairs however short the rows are. Each distance, and each
// element of a gradient, is summed in an order of its own: neither threads nor the place of a row
// change a bit.
#include <cmath>
#include <type_traits>

#include "core/parallel.h"
#include "cpu/isa/reduce/fold.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/distance.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Formulas take numbers, or vectors of them where no power is involved.
template <class V>
inline V size_of(V x) {
  return x < 0 ? -x : x;
}

template <Norm N, class V>
inline V term(V x) {
  if constexpr (N == Norm::Zero) {
    return x == 0 ? V{} : x == x ? V{} + 1 : x;  // NaN stays
  } else if constexpr (N == Norm::Two) {
    return x * x;
  } else {
    return size_of(x);
  }
}

template <Norm N, class V>
inline V combine_terms(V a, V b) {
  if constexpr (N == Norm::Infinite) {
    return (b > a) | (b != b) ? b : a;  // NaN stays
  } else {
    return a + b;
  }
}

// What a difference adds to a gradient, apart from the pair's factor.
template <Norm N, class V>
inline V slope(V x, V distance) {
  const V sign = x > 0 ? V{} + 1 : x < 0 ? V{} - 1 : x;
  if constexpr (N == Norm::Two) {
    return x;
  } else if constexpr (N == Norm::Infinite) {
    return size_of(x) == distance ? sign : V{};
  } else {
    return sign;
  }
}

// Pairs of one row with neighbouring columns of the transposed matrix.
template <class T>
struct Block {
  typedef T V __attribute__((vector_size(vector_bytes), aligned(sizeof(T)), may_alias));
  static constexpr int per = vector_bytes / static_cast<int>(sizeof(T));
  static constexpr int vectors = 4;
  static constexpr int64_t width = per * vectors;
  static V load(const T* from, int k) { return *reinterpret_cast<const V*>(from + k * per); }
  static void store(T* to, int k, V v) { *reinterpret_cast<V*>(to + k * per) = v; }
};

// One matrix as rows, the other as columns: [batch][width][others], with zeros behind the last
// column up to a whole number of blocks. Both in the compute type.
template <class S>
class Sides {
 public:
  using T = compute_t<S>;
  Sides(const Tensor& x1, const Tensor& x2)
      : rows(x1.size(1)),
        others(x2.size(1)),
        width(x1.size(2)),
        padded((others + Block<T>::width - 1) / Block<T>::width * Block<T>::width),
        memory_(direct ? 0 : x1.numel()),
        columns_(x2.size(0) * width * padded) {
    const S* const from = x1.data<S>();
    if constexpr (direct) {
      rows_ = from;
    } else {
      for (int64_t i = 0; i < x1.numel(); i++) {
        memory_[i] = static_cast<T>(from[i]);
      }
      rows_ = memory_;
    }
    for (int64_t b = 0; b < x2.size(0); b++) {
      const S* const other = x2.data<S>() + b * others * width;
      T* const to = columns_ + b * width * padded;
      for (int64_t f = 0; f < width; f++) {
        for (int64_t j = 0; j < others; j++) {
          to[f * padded + j] = static_cast<T>(other[j * width + f]);
        }
        std::fill(to + f * padded + others, to + (f + 1) * padded, T(0));
      }
    }
  }
  const T* row(int64_t i) const { return rows_ + i * width; }
  const T* columns(int64_t batch) const { return columns_ + batch * width * padded; }

  const int64_t rows, others, width, padded;

 private:
  static constexpr bool direct = std::is_same_v<S, T>;
  const T* rows_;
  Scratch<T> memory_;
  Scratch<T> columns_;
};

constexpr int64_t features_at_once = 64;  // sums of more are sums of sums

// The distance of row `a` to a column where powers overflow or vanish, or nothing is between them:
// differences are taken relative to the largest.
template <class T>
T scaled_distance(const T* a, const T* column, int64_t padded, int64_t width, double p) {
  T most = 0;
  for (int64_t f = 0; f < width; f++) {
    const T size = size_of(a[f] - column[f * padded]);
    most = size > most || size != size ? size : most;
  }
  if (most == T(0) || !(most < math::infinity<T>)) {
    return most;
  }
  double sum = 0;
  for (int64_t f = 0; f < width; f++) {
    const double share = static_cast<double>(size_of(a[f] - column[f * padded]) / most);
    sum += p == 2 ? share * share : std::pow(share, p);
  }
  const double root = p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
  return static_cast<T>(root * static_cast<double>(most));
}

// The distances of row `a` to a block of columns.
template <Norm N, class T>
void block_of_distances(const T* a, const T* columns, int64_t padded, int64_t width, T p, T* to) {
  using B = Block<T>;
  if constexpr (N == Norm::Any) {
    std::fill_n(to, B::width, T(0));
    for (int64_t first = 0; first < width; first += features_at_once) {
      alignas(64) T sums[B::width] = {};
      for (int64_t f = first; f < std::min(first + features_at_once, width); f++) {
        const T* const b = columns + f * padded;
        for (int64_t j = 0; j < B::width; j++) {
          sums[j] += math::pow(size_of(a[f] - b[j]), p);
        }
      }
      for (int64_t j = 0; j < B::width; j++) {
        to[j] += sums[j];
      }
    }
    bool far[B::width];
    for (int64_t j = 0; j < B::width; j++) {
      constexpr T least = std::is_same_v<T, float> ? T(1e-30) : T(1e-290);
      far[j] = !(to[j] > least && to[j] < math::infinity<T>);
    }
    for (int64_t j = 0; j < B::width; j++) {
      to[j] = math::pow(to[j], 1 / p);
    }
    for (int64_t j = 0; j < B::width; j++) {
      if (RL_UNLIKELY(far[j])) {
        to[j] = scaled_distance(a, columns + j, padded, width, static_cast<double>(p));
      }
    }
  } else {
    typename B::V total[B::vectors] = {};
    for (int64_t first = 0; first < width; first += features_at_once) {
      typename B::V sums[B::vectors] = {};
      for (int64_t f = first; f < std::min(first + features_at_once, width); f++) {
        const T* const b = columns + f * padded;
#pragma GCC unroll 4
        for (int k = 0; k < B::vectors; k++) {
          sums[k] = combine_terms<N>(sums[k], term<N>(a[f] - B::load(b, k)));
        }
      }
#pragma GCC unroll 4
      for (int k = 0; k < B::vectors; k++) {
        total[k] = combine_terms<N>(total[k], sums[k]);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < B::vectors; k++) {
      B::store(to, k, total[k]);
    }
    for (int64_t j = 0; N == Norm::Two && j < B::width; j++) {
      to[j] = math::sqrt(to[j]);
      constexpr T least = std::is_same_v<T, float> ? T(1e-15) : T(1e-145);
      if (RL_UNLIKELY(!(to[j] > least && to[j] < math::infinity<T>))) {
        to[j] = scaled_distance(a, columns + j, padded, width, 2);
      }
    }
  }
}

// Rows i, columns j < i of square results become what stands at (j, i), up to the first block of
// columns that was computed for the rows' group.
template <class S>
void mirror(S* to, int64_t n, int64_t first_row, int64_t last_row, int64_t columns) {
  for (int64_t i = first_row; i < last_row; i++) {
    for (int64_t j = 0; j < columns; j++) {
      to[i * n + j] = to[j * n + i];
    }
  }
}

// `swapped`: x1 and x2 have changed places, so results are transposed.
template <class S, Norm N>
void all_distances(const Tensor& out, const Tensor& x1, const Tensor& x2, double p, bool swapped) {
  using T = compute_t<S>;
  using B = Block<T>;
  constexpr int64_t piece = 16 * B::width;  // columns of a task
  constexpr int64_t rows_of_task = 16;      // which share a block of columns while it is in reach
  const Sides<S> sides(x1, x2);
  const int64_t pieces = num_chunks(0, sides.others, piece);
  const int64_t groups = num_chunks(0, sides.rows, rows_of_task);
  const int64_t work = std::min(rows_of_task, sides.rows) * std::min(piece, sides.padded) *
                       std::max<int64_t>(1, sides.width);
  const int64_t row_step = swapped ? 1 : sides.others;
  const int64_t step = swapped ? sides.rows : 1;
  // Of one matrix with itself half of the distances are enough, and have the same bits.
  const bool same = x1.data_ptr() == x2.data_ptr() && x1.sizes() == x2.sizes();
  const auto first_column = [&](int64_t row) { return same ? row / B::width * B::width : 0; };
  parallel_for(0, x1.size(0) * groups * pieces, std::max<int64_t>(1, 65536 / work),
               [&](int64_t begin, int64_t end) {
                 alignas(64) T found[B::width];
                 for (int64_t task = begin; task < end; task++) {
                   const int64_t batch = task / pieces / groups;
                   const int64_t first_row = task / pieces % groups * rows_of_task;
                   const int64_t last_row = std::min(first_row + rows_of_task, sides.rows);
                   const int64_t first = task % pieces * piece;
                   const int64_t last = std::min(first + piece, sides.others);
                   S* const to = out.data<S>() + batch * sides.rows * sides.others;
                   const int64_t start = std::max(first, first_column(first_row));
                   for (int64_t j = start; j < last; j += B::width) {
                     const int64_t n = std::min(B::width, last - j);
                     for (int64_t i = first_row; i < last_row; i++) {
                       block_of_distances<N, T>(sides.row(batch * sides.rows + i),
                                                sides.columns(batch) + j, sides.padded, sides.width,
                                                static_cast<T>(p), found);
                       for (int64_t k = 0; k < n; k++) {
                         to[i * row_step + (j + k) * step] = S(found[k]);
                       }
                     }
                   }
                 }
               });
  if (same) {
    parallel_for(0, x1.size(0) * groups, 1 + 32768 / (rows_of_task * sides.others),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t task = begin; task < end; task++) {
                     const int64_t first_row = task % groups * rows_of_task;
                     mirror(out.data<S>() + task / groups * sides.rows * sides.rows, sides.rows,
                            first_row, std::min(first_row + rows_of_task, sides.rows),
                            first_column(first_row));
                   }
                 });
  }
}

// Rows whose gradients are summed together, so that a column is loaded once for all.
constexpr int64_t rows_at_once = 2;

// For each of some rows (their elements of one feature in `a`) the sum over all pairs of what they
// add to its gradient. `scale` and `distance` are those of the pairs, [row][padded], and zero where
// the distance is, or where no pair is.
template <Norm N, int Rows, class T>
void gradients_of(const T* a, const T* columns, const T* scale, const T* distance, int64_t others,
                  int64_t padded, T p, T* to) {
  using B = Block<T>;
  alignas(64) T sums[Rows][B::width] = {};
  if constexpr (N == Norm::Any) {
    for (int r = 0; r < Rows; r++) {
      for (int64_t j = 0; j < padded; j += B::width) {
        for (int64_t k = 0; k < B::width; k++) {
          const T x = a[r] - columns[j + k];
          const T power = math::pow(x == 0 ? T(1) : size_of(x), p - 1);
          const T added = slope<Norm::One>(x, T(0)) * power * scale[r * padded + j + k];
          sums[r][k] += distance[r * padded + j + k] == 0 ? T(0) : added;
        }
      }
    }
  } else {
    typename B::V total[Rows][B::vectors] = {};
    const auto add = [&](int64_t j, bool whole) {
#pragma GCC unroll 4
      for (int k = 0; k < B::vectors; k++) {
        const auto column = B::load(columns + j, k);
#pragma GCC unroll 2
        for (int r = 0; r < Rows; r++) {
          const int64_t at = r * padded + j;
          const auto d = N == Norm::Infinite || !whole ? B::load(distance + at, k) : column;
          const auto added = slope<N>(a[r] - column, d) * B::load(scale + at, k);
          if (whole) {
            total[r][k] += added;
          } else {
            total[r][k] += d == 0 ? typename B::V{} : added;
          }
        }
      }
    };
    int64_t j = 0;
    for (; j + B::width <= others; j += B::width) {
      add(j, true);
    }
    if (j < others) {  // what stands behind the last column may be no number
      add(j, false);
    }
    for (int r = 0; r < Rows; r++) {
      for (int k = 0; k < B::vectors; k++) {
        B::store(sums[r], k, total[r][k]);
      }
    }
  }
  for (int r = 0; r < Rows; r++) {
    for (int64_t half = B::width / 2; half > 0; half /= 2) {
      for (int64_t k = 0; k < half; k++) {
        sums[r][k] += sums[r][k + half];
      }
    }
    to[r] = sums[r][0];
  }
}

template <class S, Norm N>
void gradient(const Tensor& out, const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
              const Tensor& distances) {
  using T = compute_t<S>;
  if (N == Norm::Zero) {
    return fill_raw(out, 0);
  }
  const Sides<S> sides(x1, x2);
  const T power = static_cast<T>(p);
  const int64_t work = std::max<int64_t>(1, sides.padded * sides.width);
  const auto rows_from = [&](int64_t i, auto rows, const T* scale, const T* distance) {
    constexpr int n = decltype(rows)::value;
    const T* const columns = sides.columns(i / sides.rows);
    S* const to = out.data<S>() + i * sides.width;
    for (int64_t f = 0; f < sides.width; f++) {
      T a[n];
      T sums[n];
      for (int r = 0; r < n; r++) {
        a[r] = sides.row(i + r)[f];
      }
      gradients_of<N, n>(a, columns + f * sides.padded, scale, distance, sides.others, sides.padded,
                         power, sums);
      for (int r = 0; r < n; r++) {
        to[r * sides.width + f] = S(sums[r]);
      }
    }
  };
  parallel_for(0, x1.size(0) * sides.rows, std::max<int64_t>(rows_at_once, 65536 / work),
               [&](int64_t begin, int64_t end) {
                 const Scratch<T> scale(rows_at_once * sides.padded);
                 const Scratch<T> distance(rows_at_once * sides.padded);
                 for (int64_t i = begin; i < end;) {
                   // Both rows of a pair are of one matrix.
                   const bool pair =
                       i + rows_at_once <= end && i % sides.rows + rows_at_once <= sides.rows;
                   const int64_t n = pair ? rows_at_once : 1;
                   for (int64_t r = 0; r < n; r++) {
                     const S* const g = grad.data<S>() + (i + r) * sides.others;
                     const S* const d = distances.data<S>() + (i + r) * sides.others;
                     T* const s = scale + r * sides.padded;
                     T* const length = distance + r * sides.padded;
                     std::fill_n(s, sides.padded, T(0));
                     std::fill_n(length, sides.padded, T(0));
                     for (int64_t j = 0; j < sides.others; j++) {
                       length[j] = static_cast<T>(d[j]);
                       const T factor = N == Norm::Two   ? length[j]
                                        : N == Norm::Any ? std::pow(length[j], power - 1)
                                                         : T(1);
                       s[j] = length[j] == T(0) ? T(0) : static_cast<T>(g[j]) / factor;
                     }
                   }
                   if (pair) {
                     rows_from(i, std::integral_constant<int, rows_at_once>(), scale, distance);
                   } else {
                     rows_from(i, std::integral_constant<int, 1>(), scale, distance);
                   }
                   i += n;
                 }
               });
}

template <class F>
void with_norm(double p, const F& f) {
  switch (norm_of(p)) {
    case Norm::Zero:
      return f.template operator()<Norm::Zero>();
    case Norm::One:
      return f.template operator()<Norm::One>();
    case Norm::Two:
      return f.template operator()<Norm::Two>();
    case Norm::Infinite:
      return f.template operator()<Norm::Infinite>();
    case Norm::Any:
      return f.template operator()<Norm::Any>();
  }
}

}  // namespace

void _cdist(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
  if (out.numel() == 0) {
    return;
  }
  // Vectors run over the rows of the matrix that has more of them, where the other has few.
  const bool swapped = x2.size(1) < std::min<int64_t>(16, x1.size(1));
  visit_dtype<set_floating>("cdist", x1.dtype(), [&](auto tag) {
    with_norm(p, [&]<Norm N>() {
      all_distances<typename decltype(tag)::type, N>(out, swapped ? x2 : x1, swapped ? x1 : x2, p,
                                                     swapped);
    });
  });
}

void _cdist_backward(const Tensor& out, const Tensor& grad, const Tensor& x1, const Tensor& x2,
                     double p, const Tensor& cdist) {
  if (out.numel() == 0) {
    return;
  }
  visit_dtype<set_floating>("cdist_backward", x1.dtype(), [&](auto tag) {
    with_norm(p, [&]<Norm N>() {
      gradient<typename decltype(tag)::type, N>(out, grad, x1, x2, p, cdist);
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
