// Reductions that are more than a formula of kernels/reduce.h: vector norms of any order,
// variances.
#include "cuda/column.h"
#include "cuda/reduce.cuh"
#include "kernels/math.h"
#include "kernels/reduce.h"

namespace rushlight {

namespace cuda {

namespace {

// |x| of an element of any dtype, as a real number.
template <class A>
__device__ A size_of(A x) {
  return x < A(0) ? -x : x;
}

// Vector norms. Complex elements count by their absolute value, squares are summed in double.
enum class NormKind { Count, Sum, Squares, Largest, Smallest, Powers };
template <class X, class R>
struct Norm {
  using A = X;  // what is read: complex or real
  using Acc = double;
  R* out;
  NormKind kind;
  double power;
  __device__ Acc identity() const {
    return kind == NormKind::Smallest ? math::infinity<double> : 0.0;
  }
  __device__ Acc step(Acc acc, A x, int64_t) const {
    double size = 0;
    if constexpr (is_complex_v<A>) {
      size = static_cast<double>(math::hypot(x.re, x.im));
    } else {
      size = static_cast<double>(size_of(x));
    }
    switch (kind) {
      case NormKind::Count:
        size = size == 0 ? 0 : 1;
        break;
      case NormKind::Squares:
        size = size * size;
        break;
      case NormKind::Powers:
        size = math::pow(size, power);
        break;
      default:
        break;
    }
    return combine(acc, size);
  }
  __device__ Acc combine(Acc a, Acc b) const {
    switch (kind) {
      case NormKind::Largest:
        return fold::Max<double>::combine(a, b);
      case NormKind::Smallest:
        return fold::Min<double>::combine(a, b);
      default:
        return a + b;
    }
  }
  __device__ void finish(Acc total, int64_t at) const {
    if (kind == NormKind::Squares) {
      total = math::sqrt(total);
    } else if (kind == NormKind::Powers) {
      total = math::pow(total, 1 / power);
    }
    out[at] = narrow<R>(convert<compute_t<R>>(total));
  }
};

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

}  // namespace

}  // namespace cuda

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

void cuda::linalg_vector_norm(const Tensor& out, const Tensor& self, const Scalar& ord,
                              OptionalIntArrayRef dim, bool, std::optional<ScalarType>) {
  const double p = ord.as<double>();
  const NormKind kind = p == 0                         ? NormKind::Count
                        : p == 1                       ? NormKind::Sum
                        : p == 2                       ? NormKind::Squares
                        : p == math::infinity<double>  ? NormKind::Largest
                        : p == -math::infinity<double> ? NormKind::Smallest
                                                       : NormKind::Powers;
  visit_dtype<set_floating>("linalg_vector_norm", out.dtype(), [&](auto tag) {
    using R = typename decltype(tag)::type;
    using A = compute_t<R>;
    if (self.is_complex()) {
      using Z = std::conditional_t<std::is_same_v<A, double>, complex<double>, complex<float>>;
      reduce<Z>(self, dim, false, Norm<Z, R>{out.data<R>(), kind, p});
    } else {
      reduce<R>(self, dim, false, Norm<A, R>{out.data<R>(), kind, p});
    }
  });
}

}  // namespace rushlight
