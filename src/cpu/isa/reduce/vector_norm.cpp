// Vector norms: a formula for each order that has one, powers, and once more where powers overflow
// or vanish.
#include <algorithm>
#include <atomic>

#include "core/op_support.h"
#include "cpu/isa/reduce/fold.h"
#include "cpu/readable.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// |z| of complex elements, for norms.
template <class A, class T>
void read_sizes(void* to, const void* from, int64_t stride, int64_t n) {
  A* out = static_cast<A*>(to);
  const char* in = static_cast<const char*>(from);
  for (int64_t i = 0; i < n; i++) {
    const auto z = *reinterpret_cast<const complex<T>*>(in + i * stride);
    out[i] = static_cast<A>(math::hypot(z.re, z.im));
  }
}

// Elements as real numbers: complex ones give their absolute value, which is all that a norm asks.
template <class A>
ConvertRun real_reader(const char* name, ScalarType t) {
  if (t == kComplexFloat) {
    return read_sizes<A, float>;
  }
  return t == kComplexDouble ? read_sizes<A, double> : reader<A>(name, t);
}

// Reduces the sizes of elements, in F's type, and writes finish(total), any type that converts to
// the output's.
template <class F, class Finish>
void fold(const char* name, const Tensor& out, const Tensor& self, OptionalIntArrayRef dim,
          const Finish& finish) {
  using A = typename F::type;
  const ConvertRun write = writer<A>(name, out.dtype());
  char* to = static_cast<char*>(out.data_ptr());
  const int64_t width = out.element_size();
  reduce(Leaf<F>(), plan_reduction(self, dim, false), self.data_ptr(),
         real_reader<A>(name, self.dtype()), self.dtype() == dtype_of_v<A>,
         [&](int64_t first, const A* s, int64_t n) {
           constexpr int64_t batch = 64;
           A results[batch];
           for (int64_t done = 0; done < n; done += batch) {
             const int64_t m = std::min(batch, n - done);
             for (int64_t i = 0; i < m; i++) {
               results[i] = finish(s[done + i]);
             }
             write(to + (first + done) * width, results, sizeof(A), m);
           }
         });
}

constexpr auto as_it_is = [](auto total) { return total; };

// Sum of |x|^p for the powers that have no formula of their own; and the count that is the "norm"
// of order 0.
template <class T>
struct SumPower : fold::Sum<T> {
  using A = T;
  using S = T;
  T p;
  explicit SumPower(T power) : p(power) {}
  S identity() const { return 0; }
  void row(const A* x, int64_t n, int64_t, S& s) const {
    alignas(64) T powers[row_leaf];
    for (int64_t i = 0; i < n; i++) {
      powers[i] = math::pow(x[i] < 0 ? -x[i] : x[i], p);
    }
    if (p == 0) {
      for (int64_t i = 0; i < n; i++) {
        powers[i] = x[i] == 0 ? T(0) : T(1);
      }
    }
    s = fold_row<fold::Sum<T>>(powers, n);
  }
  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, S* s) const {
    std::fill(s, s + cols, T(0));
    for (int64_t r = 0; r < rows; r++) {
      const A* row = x + r * ld;
      if (p == 0) {
        for (int64_t c = 0; c < cols; c++) {
          s[c] += row[c] == 0 ? T(0) : T(1);
        }
      } else {
        for (int64_t c = 0; c < cols; c++) {
          s[c] += math::pow(row[c] < 0 ? -row[c] : row[c], p);
        }
      }
    }
  }
  void merge(S* older, int64_t, const S* newer, int64_t, int64_t width) const {
    for (int64_t i = 0; i < width; i++) {
      older[i] += newer[i];
    }
  }
};

// The sum of squares of floats, kept in double: no overflow, and one rounding. Elements become
// doubles on the way into the sum.
struct SumFloatSquares : Leaf<fold::Sum<double>> {
  using A = float;
  using S = double;
  void row(const A* x, int64_t n, int64_t, S& s) const {
    if (n * static_cast<int64_t>(sizeof(A)) <= short_row_bytes) {
      columns(x, 1, n, 1, 0, &s);
      return;
    }
    typedef float Floats __attribute__((vector_size(vector_bytes / 2), aligned(4), may_alias));
    typedef double Doubles __attribute__((vector_size(vector_bytes), aligned(8), may_alias));
    constexpr int per = vector_bytes / static_cast<int>(sizeof(double));
    constexpr int vectors = lane_bytes / vector_bytes;
    constexpr int64_t lanes = per * vectors;
    Doubles v[vectors] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
#pragma GCC unroll 16
      for (int k = 0; k < vectors; k++) {
        const Floats* floats = reinterpret_cast<const Floats*>(x + i + k * per);
        const Doubles d = __builtin_convertvector(*floats, Doubles);
        v[k] += d * d;
      }
    }
    if (i < n) {
      alignas(64) A rest[lanes] = {};
      for_vectors<A>(n - i, [&](int64_t j, int64_t some) {
        Simd<A>::store(rest + j, load_some(x + i + j, some));
      });
#pragma GCC unroll 16
      for (int k = 0; k < vectors; k++) {
        const Doubles d =
            __builtin_convertvector(*reinterpret_cast<const Floats*>(rest + k * per), Doubles);
        v[k] += d * d;
      }
    }
    s = fold_lanes<fold::Sum<double>, double>(v);
  }
  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, S* __restrict s) const {
    std::fill(s, s + cols, 0.0);
    for (int64_t r = 0; r < rows; r++) {
      const A* row = x + r * ld;
      for (int64_t c = 0; c < cols; c++) {
        s[c] += static_cast<double>(row[c]) * row[c];
      }
    }
  }
};

// Sums of |x|^p relative to the largest |x| (to the smallest where p is negative), of which none
// overflows or vanishes.
struct SumRelativePower {
  using A = double;
  struct S {
    double unit;  // the sum counts only where this is a number other than 0
    double sum;
  };
  double p;
  S identity() const { return {p > 0 ? 0 : math::infinity<double>, 0}; }
  // NaN stays.
  double larger_or_nan(double a, double b) const {
    return b != b || (p > 0 ? b > a : b < a) ? b : a;
  }
  static bool counts(double unit) { return unit > 0 && unit < math::infinity<double>; }
  static double size_of(double x) { return x < 0 ? -x : x; }
  void row(const A* x, int64_t n, int64_t, S& s) const { columns(x, 1, n, 1, 0, &s); }
  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, S* s) const {
    for (int64_t c = 0; c < cols; c++) {
      s[c] = identity();
      for (int64_t r = 0; r < rows; r++) {
        s[c].unit = larger_or_nan(s[c].unit, size_of(x[r * ld + c]));
      }
      for (int64_t r = 0; r < rows && counts(s[c].unit); r++) {
        s[c].sum += math::pow(size_of(x[r * ld + c]) / s[c].unit, p);
      }
    }
  }
  void merge(S* older, int64_t, const S* newer, int64_t, int64_t width) const {
    for (int64_t i = 0; i < width; i++) {
      const double unit = larger_or_nan(older[i].unit, newer[i].unit);
      const auto share = [&](const S& of) {
        return of.sum == 0 ? 0 : of.sum * math::pow(of.unit / unit, p);
      };
      older[i] = {unit, counts(unit) ? share(older[i]) + share(newer[i]) : 0};
    }
  }
  double root(const S& s) const {
    const double half =
        math::pow(s.sum, 0.5 / p);  // its square may overflow where the norm does not
    return counts(s.unit) ? s.unit * half * half : s.unit;
  }
};

// Where sums of powers have all digits; others are computed once more.
template <class A>
bool is_moderate(double sum) {
  constexpr bool single = std::is_same_v<A, float>;
  return sum > (single ? 1e-30 : 1e-290) && sum < (single ? 1e37 : 1e300);
}

// The p-norms again whose sums of powers are not moderate; others have been written.
template <class A>
void norm_of_extremes(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim, double p) {
  const char* name = "linalg_vector_norm";
  const ConvertRun write = writer<double, set_floating>(name, out.dtype());
  const SumRelativePower op{p};
  reduce(op, plan_reduction(self, dim, false), self.data_ptr(),
         real_reader<double>(name, self.dtype()), self.dtype() == kFloat64,
         [&](int64_t first, const SumRelativePower::S* s, int64_t n) {
           for (int64_t i = 0; i < n; i++) {
             const double root = op.root(s[i]);
             if (!is_moderate<A>(math::pow(root, p))) {
               write(static_cast<char*>(out.data_ptr()) + (first + i) * out.element_size(), &root,
                     sizeof(double), 1);
             }
           }
         });
}

}  // namespace

void linalg_vector_norm(const Tensor& out, const Tensor& given, const Scalar& ord,
                        OptionalIntArrayRef dim, bool, std::optional<ScalarType>) {
  const Tensor self = computable(given, compute_dtype(given.dtype()));
  const char* name = "linalg_vector_norm";
  const double p = ord.as<double>();
  if (p != p) {
    fill_raw(out, Scalar(p));
    return;
  }
  visit_dtype<set_floating>(name, out.dtype(), [&](auto tag) {
    using A = compute_t<typename decltype(tag)::type>;
    if (p == 2 && self.dtype() == kFloat32) {
      const ConvertRun write = writer<double, set_floating>(name, out.dtype());
      const int64_t width = out.element_size();
      reduce(SumFloatSquares(), plan_reduction(self, dim, false), self.data_ptr(),
             reader<float>(name, kFloat32), true, [&](int64_t first, const double* s, int64_t n) {
               constexpr int64_t batch = 64;
               double roots[batch];
               for (int64_t i = 0; i < n; i += batch) {
                 const int64_t m = std::min(batch, n - i);
                 for (int64_t j = 0; j < m; j++) {
                   roots[j] = math::sqrt(s[i + j]);
                 }
                 write(static_cast<char*>(out.data_ptr()) + (first + i) * width, roots,
                       sizeof(double), m);
               }
             });
    } else if (p == 2) {
      using D = double;  // squares are summed in double: no overflow, and one rounding
      std::atomic<bool> extreme = false;
      fold<fold::SumSquares<D>>(name, out, self, dim, [&](D total) {
        if (RL_UNLIKELY(!is_moderate<D>(total))) {
          extreme.store(true, std::memory_order_relaxed);
        }
        return math::sqrt(total);
      });
      if (extreme && (self.dtype() == kFloat64 || self.dtype() == kComplexDouble)) {
        norm_of_extremes<D>(out, self, dim, p);
      }
    } else if (p == 1) {
      fold<fold::SumAbs<A>>(name, out, self, dim, as_it_is);
    } else if (p == math::infinity<double>) {
      fold<fold::MaxAbs<A>>(name, out, self, dim, as_it_is);
    } else if (p == -math::infinity<double>) {
      fold<fold::MinAbs<A>>(name, out, self, dim, as_it_is);
    } else {
      const ReducePlan plan = plan_reduction(self, dim, false);
      const SumPower<A> op(static_cast<A>(p));
      const ConvertRun write = writer<A>(name, out.dtype());
      const bool direct = self.dtype() == dtype_of_v<A>;
      std::atomic<bool> extreme = false;
      reduce(op, plan, self.data_ptr(), real_reader<A>(name, self.dtype()), direct,
             [&](int64_t first, const A* s, int64_t n) {
               for (int64_t i = 0; i < n; i++) {
                 if (RL_UNLIKELY(!is_moderate<A>(s[i]))) {
                   extreme.store(true, std::memory_order_relaxed);
                 }
                 const A root = p == 0 ? s[i] : math::pow(s[i], static_cast<A>(1 / p));
                 write(static_cast<char*>(out.data_ptr()) + (first + i) * out.element_size(), &root,
                       sizeof(A), 1);
               }
             });
      if (extreme && p != 0) {
        norm_of_extremes<A>(out, self, dim, p);
      }
    }
  });
}

}  // namespace rushlight::cpu::RL_ISA
