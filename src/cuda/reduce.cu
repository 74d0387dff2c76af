// Reductions that fold elements by the formulas of kernels/reduce.h: sums, products, extremes,
// truth, counts, norms.
#include "cuda/column.h"
#include "cuda/reduce.cuh"
#include "kernels/math.h"
#include "kernels/reduce.h"

namespace rushlight {

namespace cuda {

namespace {

// What becomes of a total: a division (mean), a root (norms).
enum class Finish { AsIs, Divide, Root };

// F: a struct of kernels/reduce.h; R: dtype of the output.
template <class F, class R, Finish How = Finish::AsIs>
struct Fold {
  using A = typename F::type;
  using Acc = A;
  R* out;
  int64_t count;
  __device__ Acc identity() const { return F::identity(); }
  __device__ Acc step(Acc acc, A x, int64_t) const { return F::combine(acc, F::map(x)); }
  __device__ Acc combine(Acc a, Acc b) const { return F::combine(a, b); }
  __device__ void finish(Acc total, int64_t at) const {
    if constexpr (How == Finish::Divide) {
      const auto n = static_cast<real_t<A>>(count);
      if constexpr (is_complex_v<A>) {
        total = A(total.re / n, total.im / n);
      } else {
        total = total / n;
      }
    } else if constexpr (How == Finish::Root) {
      total = math::sqrt(total);
    }
    out[at] = narrow<R>(convert<compute_t<R>>(total));
  }
};

int64_t count_of(const Tensor& self, const Tensor& out) {
  return out.numel() == 0 ? 0 : self.numel() / out.numel();
}

template <template <class> class F, Finish How, uint32_t Set>
void fold_numbers(const char* name, const Tensor& out, const Tensor& self,
                  OptionalIntArrayRef dim) {
  visit_dtype<Set>(name, out.dtype(), [&](auto tag) {
    using R = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_integral_v<R>, int64_t, compute_t<R>>;
    reduce<R>(self, dim, false, Fold<F<A>, R, How>{out.data<R>(), count_of(self, out)});
  });
}

// Any and All read elements as truth, in bytes that are 0 or 1.
template <class F>
struct Truth {
  using A = bool;
  using Acc = uint8_t;
  uint8_t* out;
  __device__ Acc identity() const { return F::identity(); }
  __device__ Acc step(Acc acc, A x, int64_t) const {
    return F::combine(acc, static_cast<uint8_t>(x ? 1 : 0));
  }
  __device__ Acc combine(Acc a, Acc b) const { return F::combine(a, b); }
  __device__ void finish(Acc total, int64_t at) const { out[at] = total; }
};
template <class F>
void fold_truth(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim) {
  reduce<bool>(self, dim, false, Truth<F>{static_cast<uint8_t*>(out.data_ptr())});
}

template <template <class> class F>
void fold_extreme(const char* name, const Tensor& out, const Tensor& self,
                  OptionalIntArrayRef dim) {
  if (self.dtype() == kBool) {
    if (std::is_same_v<F<int>, fold::Max<int>>) {
      fold_truth<fold::Any>(out, self, dim);
    } else {
      fold_truth<fold::All>(out, self, dim);
    }
    return;
  }
  visit_dtype<set_real>(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    reduce<T>(self, dim, false, Fold<F<compute_t<T>>, T>{out.data<T>(), 0});
  });
}

struct Count {
  using A = bool;
  using Acc = int64_t;
  int64_t* out;
  __device__ Acc identity() const { return 0; }
  __device__ Acc step(Acc acc, A x, int64_t) const { return acc + (x ? 1 : 0); }
  __device__ Acc combine(Acc a, Acc b) const { return a + b; }
  __device__ void finish(Acc total, int64_t at) const { out[at] = total; }
};

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

}  // namespace

}  // namespace cuda

void cuda::sum(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool,
               std::optional<ScalarType>) {
  if (out.dtype() == kBool) {
    return fold_truth<fold::Any>(out, self, dim);
  }
  fold_numbers<fold::Sum, Finish::AsIs, set_numbers>("sum", out, self, dim);
}
void cuda::nansum(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool,
                  std::optional<ScalarType>) {
  if (out.dtype() == kBool) {
    return fold_truth<fold::Any>(out, self, dim);
  }
  if (is_integral(out.dtype())) {
    return fold_numbers<fold::Sum, Finish::AsIs, set_integers>("nansum", out, self, dim);
  }
  fold_numbers<fold::NanSum, Finish::AsIs, set_floating | set_complexes>("nansum", out, self, dim);
}
void cuda::mean(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool,
                std::optional<ScalarType>) {
  fold_numbers<fold::Sum, Finish::Divide, set_floating | set_complexes>("mean", out, self, dim);
}
void cuda::prod(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool,
                std::optional<ScalarType>) {
  if (out.dtype() == kBool) {
    return fold_truth<fold::All>(out, self, dim);
  }
  fold_numbers<fold::Prod, Finish::AsIs, set_numbers>("prod", out, self, dim);
}
void cuda::amax(const Tensor& out, const Tensor& self, IntArrayRef dim, bool) {
  fold_extreme<fold::Max>("amax", out, self, dim);
}
void cuda::amin(const Tensor& out, const Tensor& self, IntArrayRef dim, bool) {
  fold_extreme<fold::Min>("amin", out, self, dim);
}
void cuda::max(const Tensor& out, const Tensor& self) {
  fold_extreme<fold::Max>("max_all", out, self, {});
}
void cuda::min(const Tensor& out, const Tensor& self) {
  fold_extreme<fold::Min>("min_all", out, self, {});
}
void cuda::aminmax(const Tensor& min, const Tensor& max, const Tensor& self,
                   std::optional<int64_t> dim, bool) {
  const OptionalIntArrayRef dims =
      dim.has_value() ? OptionalIntArrayRef(*dim) : OptionalIntArrayRef();
  fold_extreme<fold::Min>("aminmax", min, self, dims);
  fold_extreme<fold::Max>("aminmax", max, self, dims);
}
void cuda::any(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool) {
  fold_truth<fold::Any>(out, self, dim);
}
void cuda::all(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool) {
  fold_truth<fold::All>(out, self, dim);
}
void cuda::count_nonzero(const Tensor& out, const Tensor& self, OptionalIntArrayRef dim) {
  reduce<bool>(self, dim, false, Count{out.data<int64_t>()});
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
