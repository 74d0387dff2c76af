// Scans above the kernels: contracts and derivatives.
#include <cmath>

#include <rushlight/batching.h>

#include "core/refusals.h"
#include "ops/derivatives.h"
#include "ops/reductions.h"

namespace rushlight {

ScalarType running_dtype(const Tensor& self, const std::optional<ScalarType>& dtype) {
  warn_of_lost_parts(self.dtype(), dtype.value_or(self.dtype()));
  return dtype.value_or(is_differentiable(self.dtype()) ? self.dtype() : kInt64);
}

// ---- derivatives ----

Tensor reverse_cumsum(const Tensor& grad, int64_t dim) {
  return grad.dim() == 0 ? grad : grad.flip({dim}).cumsum(dim).flip({dim});
}

namespace {

// Factor by factor, with products instead of quotients: quadratic, but right to any order where
// factors are zero.
Tensor cumprod_backward_by_factors(const Tensor& grad, const Tensor& self, int64_t dim) {
  const int64_t n = self.size(dim);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < n; i++) {
    const Tensor later = grad.narrow(dim, i, n - i);
    const Tensor one = rushlight::ones_like(self.narrow(dim, i, 1));
    const Tensor before = i == 0 ? one : self.narrow(dim, 0, i).prod(dim, true);
    const Tensor after =
        rushlight::cat({one, self.narrow(dim, i + 1, n - i - 1).cumprod(dim)}, dim);
    parts.push_back(later.mul(before.conj()).mul(after.conj()).sum(dim, true));
  }
  return rushlight::cat(parts, dim);
}

}  // namespace

Tensor cumprod_backward(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) {
    return grad;
  }
  const Tensor zero = self.detach().eq(Scalar(0));
  const Tensor weighted = reverse_cumsum(grad.mul(result.conj()), dim);
  if (!batching::all_of(zero).any().item<bool>()) {
    return weighted.div(self.conj());
  }
  if (forward::is_differentiated(grad, self)) {
    return cumprod_backward_by_factors(grad, self, dim);
  }
  // Before the first zero of a line all is as usual, behind it results are constant. At the zero
  // itself, the slope of a later result is the product of the other factors: a cumprod in which the
  // zero is taken for a one.
  const Tensor zeros_met = zero.cumsum(dim);
  const Tensor first = zero.logical_and(zeros_met.eq(Scalar(1)));
  const Tensor before = zeros_met.eq(Scalar(0));
  const Tensor usual = weighted.div(self.conj().masked_fill(zero, Scalar(1)))
                           .masked_fill(before.logical_not(), Scalar(0));
  const Tensor others = self.masked_fill(first, Scalar(1)).cumprod(dim);
  const Tensor at_zero = grad.mul(others.conj()).masked_fill(before, Scalar(0)).sum(dim, true);
  return usual.add(at_zero.mul(first));
}

Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                             int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) {
    return grad;
  }
  // sum over later k of grad[k] * exp(self - result[k]), of complex numbers its conjugate
  const Tensor known = rushlight::real(result.detach());
  const Tensor top = known.amax(dim, true);
  if (batching::all_of(known.sub(top)).min().item<double>() > -80) {
    return reverse_cumsum(grad.mul(top.sub(result).exp().conj()), dim)
        .mul(self.sub(top).exp().conj());
  }
  // The results differ by more than exp can span: in logarithms, positive and negative parts apart.
  // Nothing has a share in sums of nothing.
  const Tensor nothing = known.eq(Scalar(-INFINITY));
  const Tensor sum = result.masked_fill(nothing, Scalar(0)).conj();
  const auto part = [&](const Tensor& size, const Tensor& present) {
    const Tensor absent = present.logical_not().logical_or(nothing);
    const Tensor log_size =
        size.masked_fill(absent, Scalar(1)).log().masked_fill(absent, Scalar(-INFINITY));
    const Tensor sums = log_size.sub(sum).flip({dim}).logcumsumexp(dim).flip({dim});
    return sums.add(self.conj()).exp();
  };
  if (is_complex(self.dtype())) {
    return part(grad, grad.ne(Scalar(0)));
  }
  const Tensor finite = part(grad, grad.gt(Scalar(0))).sub(part(grad.neg(), grad.lt(Scalar(0))));
  return rushlight::where(self.eq(Scalar(INFINITY)), reverse_cumsum(grad, dim), finite);
}

Tensor scatter_add_along(const Tensor& grad, const Tensor& indices, int64_t dim) {
  if (grad.dim() == 0 || grad.numel() == 0) {
    return grad;
  }
  return rushlight::zeros_like(grad).scatter_add(dim, indices, grad);
}

}  // namespace rushlight
