// Reductions whose partial results are more than a number: positions of extremes, variances,
// logsumexp.
#include "cuda/column.h"
#include "cuda/reduce.cuh"
#include "kernels/math.h"

namespace rushlight {

namespace cuda {

namespace {

// The first of equal elements wins; a NaN wins over numbers.
template <class T, bool Largest>
struct Place {
  using A = compute_t<T>;
  struct Acc {
    A value;
    int64_t index;  // -1: nothing yet
  };
  T* values;  // may be null
  int64_t* indices;
  __device__ static bool beats(const Acc& x, const Acc& y) {
    if (x.index < 0 || y.index < 0) {
      return y.index < 0 && x.index >= 0;
    }
    const bool x_nan = x.value != x.value;
    const bool y_nan = y.value != y.value;
    if (x_nan || y_nan) {
      return x_nan && (!y_nan || x.index < y.index);
    }
    const bool better = Largest ? x.value > y.value : x.value < y.value;
    return better || (x.value == y.value && x.index < y.index);
  }
  __device__ Acc identity() const { return {A(), -1}; }
  __device__ Acc step(Acc acc, A x, int64_t index) const { return combine(acc, {x, index}); }
  __device__ Acc combine(Acc a, Acc b) const { return beats(b, a) ? b : a; }
  __device__ void finish(Acc acc, int64_t at) const {
    indices[at] = acc.index;
    if (values != nullptr) {
      values[at] = narrow<T>(acc.value);
    }
  }
};

template <bool Largest>
void place(const char* name, const Tensor* values, const Tensor& indices, const Tensor& self,
           std::optional<int64_t> dim) {
  const OptionalIntArrayRef dims =
      dim.has_value() ? OptionalIntArrayRef(*dim) : OptionalIntArrayRef();
  visit_dtype<set_real | set_Bool>(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    reduce<T>(self, dims, true,
              Place<T, Largest>{values != nullptr ? values->data<T>() : nullptr,
                                indices.data<int64_t>()});
  });
}

// Mean and sum of squared differences from it (Welford); pieces are merged as Chan says.
template <class T>
struct Moments {
  using A = compute_t<T>;
  using R = real_t<T>;
  using Real = compute_t<R>;
  struct Acc {
    A mean;
    Real m2;
    Real n;
  };
  R* spread;
  T* mean;  // may be null
  double divisor;
  bool root;
  __device__ static Real square(A d) {
    if constexpr (is_complex_v<A>) {
      return d.re * d.re + d.im * d.im;
    } else {
      return d * d;
    }
  }
  __device__ static A scale_by(A d, Real factor) {
    if constexpr (is_complex_v<A>) {
      return A(d.re * factor, d.im * factor);
    } else {
      return d * factor;
    }
  }
  __device__ Acc identity() const { return {A(), Real(0), Real(0)}; }
  __device__ Acc step(Acc acc, A x, int64_t) const { return combine(acc, {x, Real(0), Real(1)}); }
  __device__ Acc combine(Acc a, Acc b) const {
    if (a.n == Real(0) || b.n == Real(0)) {
      return a.n == Real(0) ? b : a;
    }
    const Real n = a.n + b.n;
    const Real share = b.n / n;
    const A delta = b.mean - a.mean;
    return {a.mean + scale_by(delta, share), a.m2 + b.m2 + square(delta) * a.n * share, n};
  }
  __device__ void finish(Acc acc, int64_t at) const {
    const bool empty = acc.n == Real(0);
    const Real variance = empty ? math::nan<Real> : acc.m2 / static_cast<Real>(divisor);
    spread[at] = narrow<R>(root ? math::sqrt(variance) : variance);
    if (mean != nullptr) {
      mean[at] = narrow<T>(empty ? A(math::nan<Real>) : acc.mean);
    }
  }
};

void moments(const char* name, const Tensor& spread, const Tensor* mean, const Tensor& self,
             OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool root) {
  if (spread.numel() == 0) {
    return;
  }
  const double n = static_cast<double>(self.numel()) / static_cast<double>(spread.numel());
  const double divisor = n - (correction.has_value() ? correction->as<double>() : 1.0);
  visit_dtype<set_floating | set_complexes>(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    reduce<T>(self, dim, false,
              Moments<T>{spread.data<real_t<T>>(), mean != nullptr ? mean->data<T>() : nullptr,
                         divisor > 0 ? divisor : 0, root});
  });
}

// The largest element and the sum of exp(x - it); an infinite largest one is not subtracted.
template <class R>
struct LogSumExp {
  using A = compute_t<R>;
  struct Acc {
    A top;
    A sum;
  };
  R* out;
  __device__ static A shift(A top) { return top - top == A(0) ? top : A(0); }
  __device__ Acc identity() const { return {-math::infinity<A>, A(0)}; }
  __device__ Acc step(Acc acc, A x, int64_t) const {
    return combine(acc, {x, math::exp(x - shift(x))});
  }
  __device__ Acc combine(Acc a, Acc b) const {
    const A top = math::maximum(a.top, b.top);
    const A base = shift(top);
    const A from_a = a.sum == A(0) ? A(0) : a.sum * math::exp(shift(a.top) - base);
    const A from_b = b.sum == A(0) ? A(0) : b.sum * math::exp(shift(b.top) - base);
    return {top, from_a + from_b};
  }
  __device__ void finish(Acc acc, int64_t at) const {
    out[at] = narrow<R>(math::log(acc.sum) + shift(acc.top));
  }
};

}  // namespace

}  // namespace cuda

void cuda::max_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
                   bool) {
  place<true>("max", &values, indices, self, dim);
}
void cuda::min_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
                   bool) {
  place<false>("min", &values, indices, self, dim);
}
void cuda::argmax(const Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool) {
  place<true>("argmax", nullptr, out, self, dim);
}
void cuda::argmin(const Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool) {
  place<false>("argmin", nullptr, out, self, dim);
}

void cuda::var(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim,
               const std::optional<Scalar>& correction, bool) {
  moments("var", out, nullptr, self, dim, correction, false);
}
void cuda::std(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim,
               const std::optional<Scalar>& correction, bool) {
  moments("std", out, nullptr, self, dim, correction, true);
}
void cuda::var_mean(const Tensor& out, const Tensor& mean, const Tensor& self,
                    OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool) {
  moments("var_mean", out, &mean, self, dim, correction, false);
}
void cuda::std_mean(const Tensor& out, const Tensor& mean, const Tensor& self,
                    OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool) {
  moments("std_mean", out, &mean, self, dim, correction, true);
}

void cuda::_logsumexp(const Tensor& out, const Tensor& self, IntArrayRef dim, bool) {
  visit_dtype<set_floating>("logsumexp", out.dtype(), [&](auto tag) {
    using R = typename decltype(tag)::type;
    reduce<R>(self, dim, false, LogSumExp<R>{out.data<R>()});
  });
}

}  // namespace rushlight
