// Derivatives of scatter and scatter_reduce.
#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

// Zeros of a size with `t` in the corner: an index may reach only a part of a source.
Tensor pad_to(const Tensor& t, IntArrayRef sizes) {
  if (t.sizes() == sizes) {
    return t;
  }
  const Tensor full = t.new_zeros(sizes);
  Tensor part = full;
  for (int64_t d = 0; d < t.dim() && t.dim() == full.dim(); d++) {
    part = part.narrow(d, 0, t.size(d));
  }
  part.copy_(t.reshape(part.sizes()));
  return full;
}

}  // namespace

Tensor scatter_source_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                               IntArrayRef sizes) {
  return pad_to(grad.gather(dim, index), sizes);
}

std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self,
                                                   int64_t dim, const Tensor& index,
                                                   const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result) {
  // The part of src that the index reaches.
  Tensor reached = src;
  for (int64_t d = 0; d < index.dim() && src.dim() == index.dim(); d++) {
    reached = reached.narrow(d, 0, index.size(d));
  }
  Tensor for_self;
  Tensor for_src;
  if (reduce == "sum") {
    for_self = grad;
    for_src = grad.gather(dim, index);
  } else if (reduce == "mean") {
    const TensorOptions real = grad.options().dtype(to_real(grad.dtype()));
    const Tensor count = rushlight::full(grad.sizes(), Scalar(include_self ? 1 : 0), real)
                             .scatter_add(dim, index, rushlight::ones(index.sizes(), real))
                             .clamp_min(Scalar(1));
    for_self = grad.div(count);
    for_src = for_self.gather(dim, index);
  } else if (reduce == "prod") {
    // Each factor's slope is the product of the others: all without zeros over itself, and nothing
    // where one of the others is zero. To be differentiated itself, it says what that zero does:
    // there the result, and with two zeros the other one, stand for what is nothing.
    const Tensor self_is = self.eq(Scalar(0));
    const Tensor src_is = reached.eq(Scalar(0));
    const Tensor self_factor = self.masked_fill(self_is, Scalar(1));
    const Tensor src_factor = reached.masked_fill(src_is, Scalar(1));
    const Tensor product = self_factor.scatter_reduce(dim, index, src_factor, "prod", include_self);
    const Tensor count = (include_self ? self_is : rushlight::zeros_like(self_is))
                             .to(kInt64)
                             .scatter_add(dim, index, src_is.to(kInt64));
    const Tensor whole = grad.mul(product.conj());
    const bool twice = tls.grad_mode;
    const Tensor usual =
        twice ? grad.mul(result.conj()) : whole.masked_fill(count.ne(Scalar(0)), Scalar(0));
    const auto zeros_of = [](const Tensor& factor, const Tensor& is) {
      return factor.masked_fill(is.logical_not(), Scalar(0));
    };
    Tensor zeros;
    if (twice) {
      zeros = (include_self ? zeros_of(self, self_is) : rushlight::zeros_like(self))
                  .scatter_add(dim, index, zeros_of(reached, src_is));
    }
    // `at` brings what is known of a result to its factors.
    const auto slope = [&](const Tensor& factor, const Tensor& is, const Tensor& filled, auto at) {
      const Tensor met = at(count);
      Tensor of_zero = at(whole).masked_fill(met.ne(Scalar(1)), Scalar(0));
      if (twice) {
        const Tensor other = at(zeros).sub(zeros_of(factor, is));
        of_zero =
            of_zero.add(at(whole).mul(other.conj()).masked_fill(met.ne(Scalar(2)), Scalar(0)));
      }
      return rushlight::where(is, of_zero, at(usual).div(filled.conj()));
    };
    for_self =
        include_self ? slope(self, self_is, self_factor, [](const Tensor& t) { return t; }) : grad;
    for_src =
        slope(reached, src_is, src_factor, [&](const Tensor& t) { return t.gather(dim, index); });
  } else {
    // NaN is an extreme, too.
    const auto chosen = [](const Tensor& t, const Tensor& best) {
      return t.eq(best).logical_or(t.isnan().logical_and(best.isnan()));
    };
    const Tensor self_is = chosen(self, result);
    const Tensor src_is = chosen(reached, result.gather(dim, index));
    const Tensor count = (include_self ? self_is : rushlight::zeros_like(self_is))
                             .to(grad.dtype())
                             .scatter_add(dim, index, src_is.to(grad.dtype()));
    const Tensor share = grad.div(count.clamp_min(Scalar(1)));
    for_self = share.masked_fill(self_is.logical_not(), Scalar(0));
    for_src = share.gather(dim, index).masked_fill(src_is.logical_not(), Scalar(0));
  }
  if (!include_self) {
    for_self = for_self.scatter(dim, index, Scalar(0));
  }
  return {for_self, pad_to(for_src, src.sizes())};
}

}  // namespace rushlight
