// Distances of all pairs of rows: pair by pair, or by |a|^2 + |b|^2 - 2 a.b through one product.
#include <cmath>

#include "cpu/gemm.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

namespace {

template <class T>
double squared_length(const T* row, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double v = static_cast<compute_t<T>>(row[i]);
    sum += v * v;
  }
  return sum;
}

template <class T>
double squared_distance(const T* a, const T* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double v = static_cast<double>(static_cast<compute_t<T>>(a[i])) -
                     static_cast<double>(static_cast<compute_t<T>>(b[i]));
    sum += v * v;
  }
  return sum;
}

}  // namespace

void _euclidean_distances(const Tensor& out, const Tensor& x1, const Tensor& x2, bool by_product) {
  const int64_t n = x1.size(-2);
  const int64_t m = x2.size(-2);
  const int64_t width = x1.size(-1);
  const int64_t batch = n * m == 0 ? 0 : out.numel() / (n * m);
  const Tensor result =
      out.is_contiguous() ? out : make_empty(out.sizes(), out.dtype(), out.device());
  if (by_product && batch != 0) {
    gemm({.dtype = out.dtype(),
          .batch = batch,
          .m = n,
          .n = m,
          .k = width,
          .a = {x1.data_ptr(), width, 1, n * width},
          .b = {x2.data_ptr(), 1, width, m * width},
          .c = {result.data_ptr(), m, 1, n * m}});
  }
  visit_dtype<set_floating>("cdist", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const a = x1.data<T>();
    const T* const b = x2.data<T>();
    T* const to = result.data<T>();
    const Scratch<double> lengths(by_product ? batch * m : 0);
    if (by_product) {
      for (int64_t j = 0; j < batch * m; j++) {
        lengths[j] = squared_length(b + j * width, width);
      }
    }
    parallel_for(
        0, batch * n, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, m * width)),
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; row++) {
            const int64_t first = row / n * m;
            const T* const left = a + row * width;
            const double length = by_product ? squared_length(left, width) : 0;
            for (int64_t j = 0; j < m; j++) {
              T& place = to[row * m + j];
              const double square =
                  by_product ? length + lengths[first + j] -
                                   2 * static_cast<double>(static_cast<compute_t<T>>(place))
                             : squared_distance(left, b + (first + j) * width, width);
              place = static_cast<T>(static_cast<compute_t<T>>(std::sqrt(square < 0 ? 0 : square)));
            }
          }
        });
  });
  if (!result.is_same(out)) {
    copy_raw(out, result);
  }
}

}  // namespace rushlight::cpu
