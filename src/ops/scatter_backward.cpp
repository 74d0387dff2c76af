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
    const TensorOptions real = grad.options().dtype(compute_dtype(to_real(grad.dtype())));
    const Tensor count = rushlight::full(grad.sizes(), Scalar(include_self ? 1 : 0), real)
                             .scatter_add(dim, index, rushlight::ones(index.sizes(), real))
                             .clamp_min(Scalar(1));
    for_self = grad.div(count).to(grad.dtype());
    for_src = for_self.gather(dim, index);
  } else if (reduce == "prod") {
    // Each factor's slope is the product of the others: the result over itself; for NaN and, where
    // there is none, for zero, by which nothing can be divided, what the others make, if it is
    // alone. To be differentiated itself, it says what the other one of two such factors does.
    const Tensor nan_of_self = include_self ? self.isnan() : rushlight::zeros_like(self).isnan();
    const Tensor nans =
        nan_of_self.to(kInt64).scatter_add(dim, index, reached.isnan().to(kInt64)).ne(Scalar(0));
    const auto special = [](const Tensor& t, const Tensor& beside_nan) {
      return rushlight::where(beside_nan, t.isnan(), t.eq(Scalar(0)));
    };
    const Tensor self_is = special(self, nans);
    const Tensor src_is = special(reached, nans.gather(dim, index));
    const Tensor self_factor = self.masked_fill(self_is, Scalar(1));
    const Tensor src_factor = reached.masked_fill(src_is, Scalar(1));
    const Tensor product = self_factor.scatter_reduce(dim, index, src_factor, "prod", include_self);
    const Tensor count = (include_self ? self_is : rushlight::zeros_like(self_is))
                             .to(kInt64)
                             .scatter_add(dim, index, src_is.to(kInt64));
    const Tensor whole = grad.mul(product.conj());
    const bool twice = forward::is_differentiated(grad, self, src);
    const Tensor through = grad.mul(result.conj());
    const Tensor usual = twice ? through : rushlight::where(count.eq(Scalar(0)), whole, through);
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
      Tensor among = at(through);
      if (twice) {
        const Tensor other = at(zeros).sub(zeros_of(factor, is));
        among = rushlight::where(met.eq(Scalar(2)), at(whole).mul(other.conj()), among);
      }
      const Tensor alone = rushlight::where(met.eq(Scalar(1)), at(whole), among);
      return rushlight::where(is, alone, at(usual).div(filled.conj()));
    };
    for_self =
        include_self ? slope(self, self_is, self_factor, [](const Tensor& t) { return t; }) : grad;
    for_src =
        slope(reached, src_is, src_factor, [&](const Tensor& t) { return t.gather(dim, index); });
  } else {
    // NaN is an extreme, too.
    const auto equals_result = [](const Tensor& t, const Tensor& best) {
      return t.eq(best).logical_or(t.isnan().logical_and(best.isnan()));
    };
    const Tensor self_is = equals_result(self, result);
    const Tensor src_is = equals_result(reached, result.gather(dim, index));
    const ScalarType counted = compute_dtype(grad.dtype());
    const Tensor count = (include_self ? self_is : rushlight::zeros_like(self_is))
                             .to(counted)
                             .scatter_add(dim, index, src_is.to(counted));
    const Tensor share = grad.div(count.clamp_min(Scalar(1))).to(grad.dtype());
    for_self = share.masked_fill(self_is.logical_not(), Scalar(0));
    for_src = share.gather(dim, index).masked_fill(src_is.logical_not(), Scalar(0));
  }
  if (!include_self) {
    for_self = for_self.scatter(dim, index, Scalar(0));
  }
  return {for_self, pad_to(for_src, src.sizes())};
}

}  // namespace rushlight
