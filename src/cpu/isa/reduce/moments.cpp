// var and std, with and without the mean. One pass over memory; a leaf is read twice while it is in
// the cache.
#include <algorithm>
#include <atomic>

#include "core/op_support.h"
#include "cpu/isa/reduce/fold.h"
#include "cpu/isa/reduce/shrunk.h"

namespace rushlight::cpu::RL_ISA {

namespace {

template <class T>
struct widened {
  using type = double;
};
template <class T>
struct widened<complex<T>> {
  using type = complex<double>;
};

template <class T>
T square(T x) {
  return x * x;
}
template <class T>
T square(complex<T> x) {
  return x.re * x.re + x.im * x.im;
}

// Mean and sum of squared distances from it. Leaves subtract a mean of their own in the element's
// type; leaves are merged in double (Chan, Golub, LeVeque), so that neither length nor offset costs
// accuracy. A leaf whose squares overflow or vanish in the element's type is summed again in
// double.
template <class T>
struct Moments {
  using A = T;
  using D = typename widened<T>::type;
  using R = real_t<T>;
  struct S {
    D mean;
    double m2;
  };
  S identity() const { return {D(0), 0}; }

  // From sums of (x - shift) and of its square.
  static S state(A shift, A sum, R squares, int64_t n) {
    const D total = D(sum);
    const D off = D(total) / D(static_cast<double>(n));
    const double m2 = static_cast<double>(squares) - square(total) / static_cast<double>(n);
    return {D(shift) + off, m2 < 0 ? 0 : m2};
  }

  // Whether squares of floats have lost digits: those of equal elements seem to, too.
  static bool lost_digits(R squares) {
    return std::is_same_v<R, float> && !(squares > R(1e-30) && squares < math::infinity<R>);
  }
  // The state of n elements `step` apart, in double.
  static S state_in_double(const A* x, int64_t step, int64_t n) {
    bool same = true;
    for (int64_t i = 0; i < n; i++) {
      same &= x[i * step] == x[0];
    }
    if (same) {
      return {D(x[0]), x[0] - x[0] == A(0) ? 0 : math::nan<double>};
    }
    D mean(0);
    for (int64_t i = 0; i < n; i++) {
      mean = mean + D(x[i * step]);
    }
    mean = mean / D(static_cast<double>(n));
    S s{mean, 0};
    for (int64_t i = 0; i < n; i++) {
      s.m2 += square(D(x[i * step]) - mean);
    }
    return s;
  }

  void row(const A* x, int64_t n, int64_t, S& s) const {
    const A shift = fold_row<fold::Sum<A>>(x, n) / A(static_cast<R>(n));
    constexpr int lanes = 128 / static_cast<int>(sizeof(A));
    alignas(64) A sum[lanes] = {};
    alignas(64) R squares[lanes] = {};
    int64_t i = 0;
    if constexpr (std::is_floating_point_v<A>) {
      typedef A Vector __attribute__((vector_size(vector_bytes), aligned(sizeof(A)), may_alias));
      constexpr int per = vector_bytes / static_cast<int>(sizeof(A));
      constexpr int vectors = lanes / per;
      Vector v[vectors] = {};
      Vector q[vectors] = {};
      for (; i + lanes <= n; i += lanes) {
#pragma GCC unroll 8
        for (int k = 0; k < vectors; k++) {
          const Vector d = *reinterpret_cast<const Vector*>(x + i + k * per) - shift;
          v[k] += d;
          q[k] += d * d;
        }
      }
#pragma GCC unroll 8
      for (int k = 0; k < vectors; k++) {
        *reinterpret_cast<Vector*>(sum + k * per) = v[k];
        *reinterpret_cast<Vector*>(squares + k * per) = q[k];
      }
    }
    for (int j = 0; i < n; i++, j = (j + 1) % lanes) {
      const A d = x[i] - shift;
      sum[j] = sum[j] + d;
      squares[j] += square(d);
    }
    for (int w = lanes / 2; w > 0; w /= 2) {
      for (int j = 0; j < w; j++) {
        sum[j] = sum[j] + sum[j + w];
        squares[j] += squares[j + w];
      }
    }
    s = RL_UNLIKELY(lost_digits(squares[0])) ? state_in_double(x, 1, n)
                                             : state(shift, sum[0], squares[0], n);
  }

  void columns(const A* x, int64_t ld, int64_t rows, int64_t cols, int64_t, S* s) const {
    constexpr int64_t most = tile_bytes / static_cast<int64_t>(sizeof(A));
    alignas(64) A shift[most];
    alignas(64) A sum[most];
    alignas(64) R squares[most];
    fold_columns<fold::Sum<A>>(x, ld, rows, cols, shift);
    for (int64_t c = 0; c < cols; c++) {
      shift[c] = shift[c] / A(static_cast<R>(rows));
      sum[c] = A(0);
      squares[c] = 0;
    }
    for (int64_t r = 0; r < rows; r++) {
      const A* row = x + r * ld;
      for (int64_t c = 0; c < cols; c++) {
        const A d = row[c] - shift[c];
        sum[c] = sum[c] + d;
        squares[c] += square(d);
      }
    }
    for (int64_t c = 0; c < cols; c++) {
      s[c] = state(shift[c], sum[c], squares[c], rows);
    }
    int any = 0;
    for (int64_t c = 0; c < cols; c++) {
      any |= lost_digits(squares[c]) ? 1 : 0;
    }
    for (int64_t c = 0; c < cols && RL_UNLIKELY(any != 0); c++) {
      if (lost_digits(squares[c])) {
        s[c] = state_in_double(x + c, ld, rows);
      }
    }
  }

  void merge(S* older, int64_t n_older, const S* newer, int64_t n_newer, int64_t width) const {
    const double share = static_cast<double>(n_newer) / static_cast<double>(n_older + n_newer);
    const double weight = static_cast<double>(n_older) * share;
    for (int64_t i = 0; i < width; i++) {
      const D delta = newer[i].mean - older[i].mean;
      older[i].mean = older[i].mean + delta * D(share);
      older[i].m2 += newer[i].m2 + square(delta) * weight;
    }
  }
};

// `spread` and `mean` are written where they are given; `root`: standard deviation.
void moments(const char* name, const Tensor* spread, const Tensor* mean, const Tensor& self,
             OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool root) {
  if (!contains(set_all, self.dtype())) {
    const Tensor computed = cast_raw(self, compute_dtype(self.dtype()));
    const Tensor exact =
        mean != nullptr ? make_empty(mean->sizes(), computed.dtype(), kCPU) : Tensor();
    moments(name, spread, mean != nullptr ? &exact : nullptr, computed, dim, correction, root);
    if (mean != nullptr) {
      copy_raw(*mean, exact);
    }
    return;
  }
  const ReducePlan plan = plan_reduction(self, dim, false);
  const double subtracted = correction.has_value() ? correction->as<double>() : 1.0;
  visit_dtype<set_floating | set_complexes>(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    using D = typename widened<A>::type;
    const Moments<A> op;
    const ConvertRun write = writer<double, set_floating>(name, spread->dtype());
    const ConvertRun write_mean = writer<D, set_floating | set_complexes>(name, self.dtype());
    const double n = static_cast<double>(plan.count);
    const double divisor = n - subtracted < 0 ? 0 : n - subtracted;  // NaN stays
    const auto run = [&](ConvertRun read, bool direct, const auto& accept) {
      reduce(op, plan, self.data_ptr(), read, direct,
             [&](int64_t first, const typename Moments<A>::S* s, int64_t count) {
               for (int64_t i = 0; i < count; i++) {
                 const double variance = plan.count == 0 ? math::nan<double> : s[i].m2 / divisor;
                 const D center = plan.count == 0 ? D(math::nan<double>) : s[i].mean;
                 accept(first + i, root ? math::sqrt(variance) : variance, center);
               }
             });
    };
    const auto at = [](const Tensor* t, int64_t i) {
      return static_cast<char*>(t->data_ptr()) + i * t->element_size();
    };
    constexpr double vanishing = 1e-290;  // what is smaller is made of squares without all digits
    std::atomic<bool> overflowed = false;
    std::atomic<bool> vanished = false;
    run(reader<A, set_floating | set_complexes>(name, self.dtype()), std::is_same_v<A, T>,
        [&](int64_t i, double result, const D& center) {
          if (RL_UNLIKELY(!is_finite(result) && divisor > 0)) {
            overflowed.store(true, std::memory_order_relaxed);
          } else if (RL_UNLIKELY((root ? result * result : result) < vanishing)) {
            vanished.store(true, std::memory_order_relaxed);
          }
          write(at(spread, i), &result, sizeof(double), 1);
          if (mean != nullptr) {
            write_mean(at(mean, i), &center, sizeof(D), 1);
          }
        });
    if constexpr (std::is_same_v<A, D>) {  // squares of doubles: once more of other sizes
      const auto place = [&](int64_t i) { return reinterpret_cast<double*>(at(spread, i)); };
      if (overflowed && plan.count > 0) {
        run(read_times<T, shrinks_by>, false, [&](int64_t i, double result, const D& center) {
          if (is_finite(*place(i))) {
            return;
          }
          *place(i) = root ? result / shrinks_by : result / shrinks_by / shrinks_by;
          if (mean != nullptr) {
            const D plain = center / D(shrinks_by);
            write_mean(at(mean, i), &plain, sizeof(D), 1);
          }
        });
      }
      if (vanished && plan.count > 0) {
        run(read_times<T, grows_by>, false, [&](int64_t i, double result, const D&) {
          const double found = root ? result / grows_by : result / grows_by / grows_by;
          const double before = *place(i);
          if ((root ? before * before : before) < vanishing && is_finite(found)) {
            *place(i) = found;
          }
        });
      }
    }
  });
}

}  // namespace

void var(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim,
         const std::optional<Scalar>& correction, bool) {
  moments("var", &out, nullptr, self, dim, correction, false);
}

void std(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim,
         const std::optional<Scalar>& correction, bool) {
  moments("std", &out, nullptr, self, dim, correction, true);
}

void var_mean(const Tensor& out, const Tensor& mean, const Tensor& self, OptionalIntArrayRef dim,
              const std::optional<Scalar>& correction, bool) {
  moments("var_mean", &out, &mean, self, dim, correction, false);
}

void std_mean(const Tensor& out, const Tensor& mean, const Tensor& self, OptionalIntArrayRef dim,
              const std::optional<Scalar>& correction, bool) {
  moments("std_mean", &out, &mean, self, dim, correction, true);
}

}  // namespace rushlight::cpu::RL_ISA
