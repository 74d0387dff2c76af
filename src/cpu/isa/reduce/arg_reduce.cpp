// Reductions that report positions or two extremes: max and min along a dimension, argmax, argmin,
// aminmax. The first of equal elements wins; a NaN wins over numbers.
#include <algorithm>

#include "cpu/isa/reduce/fold.h"
#include "kernels/by_size.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// F is fold::Max or fold::Min.
template <class F, bool Largest>
struct Extreme {
  using A = typename F::type;
  struct S {
    A value;
    int64_t index;
  };
  // x ousts an older y.
  static bool beats(A x, A y) {
    const bool better = Largest ? x > y : x < y;
    return better | ((x != x) & (y == y));
  }
  S identity() const { return {F::identity(), 0}; }

  void row(const A* x, int64_t n, int64_t first, S& s) const {
    const A best = fold_row<F>(x, n);
    const int64_t i = best == best ? find(x, n, [best](A v) { return v == best; })
                                   : find(x, n, [](A v) { return v != v; });
    s = {x[i], first + i};
  }

  // The first element that `is_it`; there is one. Blocks without it are passed over as vectors.
  template <class Test>
  static int64_t find(const A* x, int64_t n, const Test& is_it) {
    using Found = typename unsigned_of<sizeof(A)>::type;  // a bool would keep the loop scalar
    constexpr int64_t step = 256 / static_cast<int64_t>(sizeof(A));
    int64_t i = 0;
    for (; i + step <= n; i += step) {
      Found found = 0;
      for (int64_t j = 0; j < step; j++) {
        found = static_cast<Found>(found | (is_it(x[i + j]) ? 1 : 0));
      }
      if (found != 0) {
        break;
      }
    }
    while (!is_it(x[i])) {
      i++;
    }
    return i;
  }

  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t first, S* s) const {
    using Index = typename unsigned_of<sizeof(A)>::type;  // as wide as A, for the vectors' sake
    constexpr int64_t most = tile_bytes / static_cast<int64_t>(sizeof(A));
    alignas(64) A value[most];
    alignas(64) Index index[most];
    for (int64_t c = 0; c < cols; c++) {
      value[c] = x[c];
      index[c] = 0;
    }
    for (int64_t r = 1; r < rows; r++) {
      const A* row = x + r * ld;
      for (int64_t c = 0; c < cols; c++) {
        const bool better = beats(row[c], value[c]);
        value[c] = better ? row[c] : value[c];
        index[c] = better ? static_cast<Index>(r) : index[c];
      }
    }
    for (int64_t c = 0; c < cols; c++) {
      s[c] = {value[c], first + static_cast<int64_t>(index[c])};
    }
  }

  void merge(S* older, int64_t, const S* newer, int64_t, int64_t width) const {
    for (int64_t i = 0; i < width; i++) {
      if (beats(newer[i].value, older[i].value)) {
        older[i] = newer[i];
      }
    }
  }
};

// `values` may be left out.
template <bool Largest>
void extreme(const char* name, const Tensor* values, const Tensor& indices, const Tensor& self,
             OptionalIntArrayRef dim) {
  const ReducePlan plan = plan_reduction(self, dim, true);
  visit_order_type(name, self.dtype(), [&](auto tag) {
    using A = typename decltype(tag)::type;
    using Op = Extreme<std::conditional_t<Largest, fold::Max<A>, fold::Min<A>>, Largest>;
    const Op op;
    const bool direct = self.dtype() == dtype_of_v<A>;
    const ConvertRun write = writer<A, set_real | set_Bool>(name, self.dtype());
    reduce(op, plan, self.data_ptr(), reader<A, set_real | set_Bool>(name, self.dtype()), direct,
           [&](int64_t first, const typename Op::S* s, int64_t n) {
             int64_t* to = indices.data<int64_t>() + first;
             for (int64_t i = 0; i < n; i++) {
               to[i] = s[i].index;
             }
             if (values != nullptr) {
               write(static_cast<char*>(values->data_ptr()) + first * values->element_size(),
                     &s[0].value, sizeof(typename Op::S), n);
             }
           });
  });
}

OptionalIntArrayRef one_dim(const std::optional<int64_t>& dim) {
  return dim.has_value() ? OptionalIntArrayRef(*dim) : OptionalIntArrayRef();
}

template <class T>
struct MinMax {
  using A = T;
  struct S {
    T min;
    T max;
  };
  S identity() const { return {fold::Min<T>::identity(), fold::Max<T>::identity()}; }
  void row(const A* x, int64_t n, int64_t, S& s) const {
    s = {fold_row<fold::Min<T>>(x, n), fold_row<fold::Max<T>>(x, n)};
  }
  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, S* s) const {
    constexpr int64_t most = tile_bytes / static_cast<int64_t>(sizeof(A));
    alignas(64) A low[most];
    alignas(64) A high[most];
    fold_columns<fold::Min<T>>(x, ld, rows, cols, low);
    fold_columns<fold::Max<T>>(x, ld, rows, cols, high);
    for (int64_t c = 0; c < cols; c++) {
      s[c] = {low[c], high[c]};
    }
  }
  void merge(S* older, int64_t, const S* newer, int64_t, int64_t width) const {
    for (int64_t i = 0; i < width; i++) {
      older[i] = {fold::Min<T>::combine(older[i].min, newer[i].min),
                  fold::Max<T>::combine(older[i].max, newer[i].max)};
    }
  }
};

}  // namespace

void max_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
  extreme<true>("max", &values, indices, self, dim);
}

void min_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool) {
  extreme<false>("min", &values, indices, self, dim);
}

void argmax(const Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool) {
  extreme<true>("argmax", nullptr, out, self, one_dim(dim));
}

void argmin(const Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool) {
  extreme<false>("argmin", nullptr, out, self, one_dim(dim));
}

void aminmax(const Tensor& min, const Tensor& max, const Tensor& self, std::optional<int64_t> dim,
             bool) {
  const ReducePlan plan = plan_reduction(self, one_dim(dim), false);
  visit_order_type("aminmax", self.dtype(), [&](auto tag) {
    using A = typename decltype(tag)::type;
    using S = typename MinMax<A>::S;
    const MinMax<A> op;
    const bool direct = self.dtype() == dtype_of_v<A>;
    const ConvertRun write = writer<A, set_real | set_Bool>("aminmax", self.dtype());
    reduce(op, plan, self.data_ptr(), reader<A, set_real | set_Bool>("aminmax", self.dtype()),
           direct, [&](int64_t first, const S* s, int64_t n) {
             const int64_t at = first * min.element_size();
             write(static_cast<char*>(min.data_ptr()) + at, &s[0].min, sizeof(S), n);
             write(static_cast<char*>(max.data_ptr()) + at, &s[0].max, sizeof(S), n);
           });
  });
}

}  // namespace rushlight::cpu::RL_ISA
