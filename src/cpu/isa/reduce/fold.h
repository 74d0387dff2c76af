// Leaf functions of the reduction driver. `reduce` runs an op that has the types A (elements as
// loaded) and S (state):
//   S identity() const;
//   void row(const A* x, int64_t n, int64_t first, S& s) const;
//   void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t first, S* s) const;
//   void merge(S* older, int64_t n_older, const S* newer, int64_t n_newer, int64_t width) const;
// `Leaf` is such an op made of a formula (src/kernels/reduce.h).
#pragma once

#include <algorithm>
#include <utility>

#include "cpu/isa/pointwise/cast.h"
#include "cpu/isa/pointwise/convert_run.h"
#include "cpu/isa/simd.h"
#include "kernels/math.h"
#include "kernels/reduce.h"

namespace rushlight::cpu::RL_ISA {

// Asks for the beginning of a row while the one before it is read: processors look ahead by
// themselves within a page only.
template <class A>
void prefetch_head(const A* row, int64_t n) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(A));
  for (int64_t i = 0; i < std::min(n, 8 * line); i += line) {
    __builtin_prefetch(row + i);
  }
}

// emit(first_output, states, n) is called for runs of outputs, from several threads. `elements` are
// the arguments of run_reduction() that say where they come from.
template <class Op, class F, class... Elements>
void reduce_elements(const Op& op, const ReducePlan& plan, const F& emit,
                     const Elements&... elements) {
  using A = typename Op::A;
  using S = typename Op::S;
  const ReduceOp erased{
      &op,
      sizeof(A),
      sizeof(S),
      [](const void* c, void* s) { *static_cast<S*>(s) = static_cast<const Op*>(c)->identity(); },
      [](const void* c, const void* x, int64_t ld, int64_t rows, int64_t n, int64_t first,
         void* s) {
        const A* row = static_cast<const A*>(x);
        for (int64_t r = 0; r < rows; r++, row += ld) {
          prefetch_head(row + ld, r + 1 < rows ? n : 0);
          static_cast<const Op*>(c)->row(row, n, first, static_cast<S*>(s)[r]);
        }
      },
      [](const void* c, const void* x, int64_t ld, int64_t rows, int64_t cols, int64_t first,
         void* s) {
        static_cast<const Op*>(c)->columns(static_cast<const A*>(x), ld, rows, cols, first,
                                           static_cast<S*>(s));
      },
      [](const void* c, void* older, int64_t n_older, const void* newer, int64_t n_newer,
         int64_t width) {
        static_cast<const Op*>(c)->merge(static_cast<S*>(older), n_older,
                                         static_cast<const S*>(newer), n_newer, width);
      },
      transpose};
  const Emit erased_emit{&emit, [](const void* c, int64_t first, const void* states, int64_t n) {
                           (*static_cast<const F*>(c))(first, static_cast<const S*>(states), n);
                         }};
  run_reduction(erased, plan, elements..., erased_emit);
}
template <class Op, class F>
void reduce(const Op& op, const ReducePlan& plan, const void* data, ConvertRun read, bool direct,
            const F& emit) {
  reduce_elements(op, plan, emit, data, read, direct);
}

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

// Lanes of a row: as many on every instruction set, so that they agree on bits.
inline constexpr int lane_bytes = 256;
inline constexpr int short_lane_bytes = 64;  // of rows that are shorter than that

// The first n elements of a vector, of less than all.
template <class Vector, class A>
RL_INLINE Vector load_lanes(const A* x, int64_t n) {
#if defined(__AVX512F__)
  const auto mask = (uint64_t{1} << n) - 1;
  if constexpr (sizeof(A) == 4) {
    return reinterpret_cast<Vector>(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), x));
  } else if constexpr (sizeof(A) == 8) {
    return reinterpret_cast<Vector>(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), x));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(A) == 4) {
    return reinterpret_cast<Vector>(
        _mm256_maskload_epi32(reinterpret_cast<const int*>(x), first_lanes(n)));
  }
#endif
  Vector v{};
  std::memcpy(&v, x, static_cast<size_t>(n) * sizeof(A));
  return v;
}

// A mask of the first n lanes.
template <class Vector>
RL_INLINE auto first_of(int64_t n) {
  using A = std::remove_cvref_t<decltype(Vector{}[0])>;
  using Lane =
      std::conditional_t<sizeof(A) == 8, int64_t,
                         std::conditional_t<sizeof(A) == 4, int32_t,
                                            std::conditional_t<sizeof(A) == 2, int16_t, int8_t>>>;
  typedef Lane Lanes __attribute__((vector_size(sizeof(Vector))));
  Lanes index;
  for (int j = 0; j < static_cast<int>(sizeof(Vector) / sizeof(A)); j++) {
    index[j] = static_cast<Lane>(j);
  }
  return index < static_cast<Lane>(n);
}

// The lanes of all vectors are added in halves, as those in memory do at the end of fold_row.
template <class F, class A, class Vector, int Vectors>
A fold_lanes(Vector (&v)[Vectors]) {
  constexpr int lanes = sizeof(Vector) / sizeof(A);
#pragma GCC unroll 4
  for (int w = Vectors / 2; w > 0; w /= 2) {
#pragma GCC unroll 8
    for (int k = 0; k < w; k++) {
      v[k] = F::combine(v[k], v[k + w]);
    }
  }
  return fold_halves<F, lanes / 2>(v[0], std::make_index_sequence<lanes>())[0];
}

template <bool Largest, class A>
struct Better {
  template <class Vector>
  static Vector combine(Vector a, Vector b) {
    return (Largest ? a > b : a < b) ? a : b;
  }
};

// The largest (or smallest) of a row of at least one vector, if there is no NaN: a comparison for
// each pair of vectors looks for those. What is left at the end is taken with some that were.
template <bool Largest, class A>
bool extreme_number(const A* x, int64_t n, A& result) {
  using V = Simd<A>;
  constexpr int64_t w = V::width;
  const auto better = [](auto a, auto b) { return Largest ? V::max(a, b) : V::min(a, b); };
  typename V::V best[4];
  best[0] = V::load(x);
  auto nan = V::unordered(best[0], best[0]);
  if (n < 4 * w) {
    const auto take = [&](const A* from) {
      const typename V::V v = V::load(from);
      best[0] = better(best[0], v);
      nan = V::either(nan, V::unordered(v, v));
    };
    for (int64_t i = w; i + w <= n; i += w) {
      take(x + i);
    }
    take(x + n - w);
  } else {
#pragma GCC unroll 4
    for (int k = 1; k < 4; k++) {
      best[k] = V::load(x + k * w);
    }
    nan = V::either(V::unordered(best[0], best[1]), V::unordered(best[2], best[3]));
    const auto take = [&](const A* from) {
      typename V::V v[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; k++) {
        v[k] = V::load(from + k * w);
        best[k] = better(best[k], v[k]);
      }
      nan = V::either(nan, V::unordered(v[0], v[1]));
      nan = V::either(nan, V::unordered(v[2], v[3]));
    };
    for (int64_t i = 4 * w; i + 4 * w <= n; i += 4 * w) {
      take(x + i);
    }
    take(x + n - 4 * w);
    best[0] = better(better(best[0], best[1]), better(best[2], best[3]));
  }
  if (V::any(nan)) {
    return false;
  }
  typedef A Elements __attribute__((vector_size(w * sizeof(A))));
  result = fold_halves<Better<Largest, A>, w / 2>(reinterpret_cast<Elements>(best[0]),
                                                  std::make_index_sequence<w>())[0];
  return true;
}

// Of at least as many elements as there are lanes.
template <class F, int Bytes, class A>
A fold_by_lanes(const A* x, int64_t n) {
  constexpr int lanes = Bytes / static_cast<int>(sizeof(A));
  int64_t i = 0;
  if constexpr (std::is_arithmetic_v<A>) {
    typedef A Vector __attribute__((vector_size(vector_bytes), aligned(sizeof(A)), may_alias));
    constexpr int per = vector_bytes / static_cast<int>(sizeof(A));
    constexpr int vectors = Bytes / vector_bytes;
    Vector v[vectors];
#pragma GCC unroll 16
    for (int k = 0; k < vectors; k++) {
      v[k] = F::map(*reinterpret_cast<const Vector*>(x + k * per));
    }
    for (i = lanes; i + lanes <= n; i += lanes) {
#pragma GCC unroll 16
      for (int k = 0; k < vectors; k++) {
        v[k] = F::combine(v[k], F::map(*reinterpret_cast<const Vector*>(x + i + k * per)));
      }
    }
    if (i == n) {
      return fold_lanes<F, A>(v);
    }
    // What is left goes to the first lanes.
#pragma GCC unroll 16
    for (int k = 0; k < vectors; k++) {
      const int64_t rest = n - i - k * per;
      if (rest >= per) {
        v[k] = F::combine(v[k], F::map(*reinterpret_cast<const Vector*>(x + i + k * per)));
      } else if (rest > 0) {
        const Vector next = F::combine(v[k], F::map(load_lanes<Vector>(x + i + k * per, rest)));
        v[k] = first_of<Vector>(rest) ? next : v[k];
      }
    }
    return fold_lanes<F, A>(v);
  } else {
    A lane[lanes];
    for (int j = 0; j < lanes; j++) {
      lane[j] = F::map(x[j]);
    }
    for (i = lanes; i < n; i += lanes) {
      for (int64_t j = 0; j < std::min<int64_t>(lanes, n - i); j++) {
        lane[j] = F::combine(lane[j], F::map(x[i + j]));
      }
    }
    for (int w = lanes / 2; w > 0; w /= 2) {
      for (int j = 0; j < w; j++) {
        lane[j] = F::combine(lane[j], lane[j + w]);
      }
    }
    return lane[0];
  }
}

template <class F, class A>
A fold_row(const A* x, int64_t n) {
  constexpr bool largest = std::is_same_v<F, fold::Max<A>>;
  if constexpr (std::is_floating_point_v<A> && (largest || std::is_same_v<F, fold::Min<A>>)) {
    A result;
    if (n >= Simd<A>::width && extreme_number<largest>(x, n, result)) {
      return result;
    }
  }
  constexpr int size = static_cast<int>(sizeof(A));
  if constexpr (!std::is_integral_v<A>) {
    if (n * size <= short_row_bytes) {
      A total = n == 0 ? F::identity() : F::map(x[0]);
      for (int64_t i = 1; i < n; i++) {
        total = F::combine(total, F::map(x[i]));
      }
      return total;
    }
  }
  if (n >= lane_bytes / size) {
    return fold_by_lanes<F, lane_bytes>(x, n);
  }
  if constexpr (std::is_floating_point_v<A>) {
    if (n >= short_lane_bytes / size) {
      return fold_by_lanes<F, short_lane_bytes>(x, n);
    }
  }
  if constexpr (std::is_integral_v<A>) {
    A total = F::identity();
    for (int64_t i = 0; i < n; i++) {
      total = F::combine(total, F::map(x[i]));
    }
    return total;
  } else {
    A a[4] = {F::identity(), F::identity(), F::identity(), F::identity()};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      for (int j = 0; j < 4; j++) {
        a[j] = F::combine(a[j], F::map(x[i + j]));
      }
    }
    for (int j = 0; i + j < n; j++) {
      a[j] = F::combine(a[j], F::map(x[i + j]));
    }
    return F::combine(F::combine(a[0], a[2]), F::combine(a[1], a[3]));
  }
}

// s[c] = fold of column c.
template <class F, class A>
void fold_columns(const A* x, int64_t ld, int64_t rows, int64_t cols, A* __restrict s) {
  for (int64_t c = 0; c < cols; c++) {
    s[c] = F::map(x[c]);
  }
  int64_t r = 1;
  for (; r + 4 <= rows; r += 4) {
    const A* row = x + r * ld;
    for (int64_t c = 0; c < cols; c++) {
      A a = F::combine(s[c], F::map(row[c]));
      a = F::combine(a, F::map(row[c + ld]));
      a = F::combine(a, F::map(row[c + 2 * ld]));
      s[c] = F::combine(a, F::map(row[c + 3 * ld]));
    }
  }
  for (; r < rows; r++) {
    const A* row = x + r * ld;
    for (int64_t c = 0; c < cols; c++) {
      s[c] = F::combine(s[c], F::map(row[c]));
    }
  }
}

template <class F>
struct Merging {
  using A = typename F::type;
  using S = typename F::State;
  F formula = {};
  S identity() const { return formula.identity(); }
  void merge(S* __restrict older, int64_t, const S* __restrict newer, int64_t,
             int64_t width) const {
    for (int64_t i = 0; i < width; i++) {
      older[i] = formula.combine(older[i], newer[i]);
    }
  }
};

// The leaf functions of a formula: by its `step`, one element after the other ...
template <class F>
struct Leaf : Merging<F> {
  using A = typename F::type;
  using S = typename F::State;
  void row(const A* x, int64_t n, int64_t first, S& s) const { columns(x, 1, n, 1, first, &s); }
  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t first, S* s) const {
    std::fill(s, s + cols, this->identity());
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t c = 0; c < cols; c++) {
        s[c] = this->formula.step(s[c], x[r * ld + c], first + r);
      }
    }
  }
};

// ... or by its `map`, in lanes that do not wait for each other, merged in a fixed tree. leaves.h
// has those that are written by hand.
template <class F>
  requires requires(typename F::type x) { F::map(x); }
struct Leaf<F> : Merging<F> {
  using A = typename F::type;
  void row(const A* x, int64_t n, int64_t, A& s) const { s = fold_row<F>(x, n); }
  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, A* s) const {
    fold_columns<F>(x, ld, rows, cols, s);
  }
};

}  // namespace rushlight::cpu::RL_ISA
