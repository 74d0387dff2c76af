// Distances between all rows of two matrices, and their gradient: a team of threads for each
// distance and a thread for each element of a gradient.
#include <cmath>

#include "cuda/column.h"
#include "cuda/rows.cuh"
#include "kernels/distance.h"

namespace rushlight {

namespace cuda {

namespace {

// [batches, rows, width] and [batches, others, width].
template <class T>
struct Pairs {
  const T* a;
  const T* b;
  int64_t rows;
  int64_t others;
  int64_t width;
};
template <class T>
Pairs<T> pairs_of(const Tensor& x1, const Tensor& x2) {
  return {x1.data<T>(), x2.data<T>(), x1.size(1), x2.size(1), x1.size(2)};
}

template <class T>
struct Distances {
  using A = compute_t<T>;
  T* out;
  Pairs<T> pairs;
  Norm norm;
  A p;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t pair) const {
    const int64_t row = pair / pairs.others;
    const T* const a = pairs.a + row * pairs.width;
    const T* const b =
        pairs.b + (row / pairs.rows * pairs.others + pair % pairs.others) * pairs.width;
    A sum = 0;
    for (int64_t i = team.rank(); i < pairs.width; i += team.size()) {
      const A x = widen(a[i]) - widen(b[i]);
      const A size = x < A(0) ? -x : x;
      switch (norm) {
        case Norm::Zero:
          sum += size == A(0) ? A(0) : A(1);
          break;
        case Norm::One:
          sum += size;
          break;
        case Norm::Two:
          sum += x * x;
          break;
        case Norm::Infinite:
          sum = math::maximum(sum, size);
          break;
        case Norm::Any:
          sum += math::pow(size, p);
          break;
      }
    }
    sum = norm == Norm::Infinite ? team.template all<MaxOf>(sum) : team.template all<SumOf>(sum);
    if (team.rank() == 0) {
      sum = norm == Norm::Two ? math::sqrt(sum) : norm == Norm::Any ? math::pow(sum, 1 / p) : sum;
      out[pair] = narrow<T>(sum);
    }
  }
};

template <class T>
struct DistancesBackward {
  using A = compute_t<T>;
  T* out;
  Pairs<T> pairs;
  const T* grad;
  const T* distances;
  Norm norm;
  A p;
  // The derivative of a distance by x, one of its differences.
  __device__ A slope(A x, A distance) const {
    const A sign = x > A(0) ? A(1) : x < A(0) ? A(-1) : x;
    switch (norm) {
      case Norm::One:
        return sign;
      case Norm::Two:
        return x / distance;
      case Norm::Infinite:
        return x * sign == distance ? sign : A(0);
      default:
        return sign * math::pow(x == A(0) ? A(1) : x * sign, p - 1) / math::pow(distance, p - 1);
    }
  }
  __device__ void operator()(const int64_t (&at)[2]) const {  // row, element of it
    const int64_t row = at[0];
    const A own = widen(pairs.a[row * pairs.width + at[1]]);
    const T* const b = pairs.b + row / pairs.rows * pairs.others * pairs.width + at[1];
    A sum = 0;
    for (int64_t j = 0; j < pairs.others && norm != Norm::Zero; j++) {
      const A distance = widen(distances[row * pairs.others + j]);
      if (distance != A(0)) {
        sum +=
            widen(grad[row * pairs.others + j]) * slope(own - widen(b[j * pairs.width]), distance);
      }
    }
    out[row * pairs.width + at[1]] = narrow<T>(sum);
  }
};

}  // namespace

}  // namespace cuda

void cuda::_cdist(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
  if (out.numel() == 0) {
    return;
  }
  const Launch launch(out.device());
  visit_dtype<set_floating>("cdist", x1.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(
        launch, out.numel(), x1.size(2), 1,
        Distances<T>{out.data<T>(), pairs_of<T>(x1, x2), norm_of(p), static_cast<compute_t<T>>(p)});
  });
}

void cuda::_cdist_backward(const Tensor& out, const Tensor& grad, const Tensor& x1,
                           const Tensor& x2, double p, const Tensor& cdist) {
  if (out.numel() == 0) {
    return;
  }
  const Launch launch(out.device());
  visit_dtype<set_floating>("cdist_backward", x1.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch,
         Space<2>{{x1.size(0) * x1.size(1), x1.size(2)}, {DimVector{1, 0}, DimVector{0, 1}}},
         DistancesBackward<T>{out.data<T>(), pairs_of<T>(x1, x2), grad.data<T>(), cdist.data<T>(),
                              norm_of(p), static_cast<compute_t<T>>(p)});
  });
}

}  // namespace rushlight
