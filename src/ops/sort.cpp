// Sorting and searching above the kernels: contracts, composites, derivatives.
#include "ops/derivatives.h"
#include "ops/reductions.h"

namespace rushlight {

namespace {

int64_t size_along(const Tensor& self, int64_t dim) { return self.dim() == 0 ? 1 : self.size(dim); }

}  // namespace

void check_comparable(const char* name, const Tensor& self) {
  if (self.is_complex()) {
    dtype_not_implemented(name, self.dtype());
  }
}

// An empty row is refused as such.
void check_rank(const Tensor& self, int64_t k, int64_t dim) {
  const int64_t n = size_along(self, wrap_dim(dim, self.dim()));
  RL_CHECK(n == 0 || (k >= 1 && k <= n), "kthvalue(): selected number k out of range: ", k, " of ",
           n, " elements along dimension ", dim);
}

namespace shape {

OutSpecs<2> topk(Tensor& self, int64_t& k, int64_t& dim, bool&, bool&) {
  check_comparable("topk", self);
  dim = wrap_dim(dim, self.dim());
  RL_CHECK(k >= 0 && k <= size_along(self, dim), "selected index k out of range");
  DimVector sizes = self.sizes();
  if (self.dim() > 0) {
    sizes[dim] = k;
  } else {
    k = 1;  // a 0-d result holds an element even where none was asked for
  }
  return {OutSpec{sizes, self.dtype()}, OutSpec{sizes, kInt64}};
}

OutSpec searchsorted(Tensor& sorted_sequence, Tensor& self, bool& out_int32, bool& right,
                     std::optional<std::string>& side, Tensor& sorter) {
  check_comparable("searchsorted", sorted_sequence);
  check_comparable("searchsorted", self);
  RL_CHECK(sorted_sequence.dim() > 0,
           "searchsorted(): boundaries tensor should be 1 dimension or more, but got one number, "
           "of shape ",
           sorted_sequence.sizes());
  if (side.has_value()) {
    RL_CHECK(*side == "left" || *side == "right",
             "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
    RL_CHECK(!right || *side == "right",
             "searchsorted(): side and right can't be set to opposites, but side is ", *side,
             " and right True");
    right = *side == "right";
  }
  bool matches = sorted_sequence.dim() == 1;
  if (!matches && self.dim() == sorted_sequence.dim()) {
    matches = true;
    for (int64_t d = 0; d < self.dim() - 1; d++) {
      matches &= self.sizes()[d] == sorted_sequence.sizes()[d];
    }
  }
  RL_CHECK(matches,
           "searchsorted(): boundaries tensor should be 1 dimension, or have the sizes of the "
           "input in all but the last, but got boundaries of shape ",
           sorted_sequence.sizes(), " and an input of ", self.sizes());
  if (sorter.defined()) {
    RL_CHECK(sorter.sizes() == sorted_sequence.sizes(),
             "searchsorted(): boundary and sorter must have the same size, but boundaries have ",
             sorted_sequence.sizes(), " and sorter ", sorter.sizes());
    RL_CHECK(sorter.dtype() == kInt64,
             "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
             enum_name(sorter.dtype()));
  }
  RL_CHECK(!out_int32 || sorted_sequence.sizes()[sorted_sequence.dim() - 1] < INT32_MAX,
           "searchsorted(): with out_int32 there may be fewer boundaries than ", INT32_MAX,
           ", but got ", sorted_sequence.sizes()[sorted_sequence.dim() - 1]);
  return {self.sizes(), out_int32 ? kInt32 : kInt64};
}

OutSpec histc(Tensor& self, int64_t& bins, Scalar& min, Scalar& max) {
  min.check_fits(kFloat64);
  max.check_fits(kFloat64);
  RL_CHECK(bins > 0, "bins must be > 0");
  check_floating("histogram_cpu", self);
  return {{bins}, self.dtype()};
}

}  // namespace shape

namespace composite {

std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending) {
  return rushlight::sort(self, std::optional<bool>(false), dim, descending);
}

Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(rushlight::sort(self, std::optional<bool>(false), dim, descending));
}
Tensor argsort_stable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(rushlight::sort(self, std::optional<bool>(stable), dim, descending));
}

Tensor msort(const Tensor& self) {
  return std::get<0>(rushlight::sort(self, std::optional<bool>(false), 0, false));
}

namespace {

template <class Along>
Tensor median_of_all(const Tensor& self, const Along& along) {
  if (self.numel() == 0) {
    RL_CHECK(self.is_floating_point(),
             "median(): an empty tensor of integers has no middle element");
    return rushlight::full({}, Scalar(double(NAN)), self.options());
  }
  const Tensor flat = self.reshape({-1});
  if (!forward::is_differentiated(flat)) {
    return std::get<0>(along(flat));
  }
  // Equal elements share the gradient, as those of amax do.
  const Tensor value = std::get<0>(along(flat.detach()));
  const Tensor chosen = flat.eq(value).logical_or(flat.isnan().logical_and(value.isnan()));
  return rushlight::where(chosen, flat, Scalar(-HUGE_VAL)).amax();
}

}  // namespace

Tensor median(const Tensor& self) {
  return median_of_all(self, [](const Tensor& flat) { return flat.median(0); });
}
Tensor nanmedian(const Tensor& self) {
  return median_of_all(self, [](const Tensor& flat) { return flat.nanmedian(0); });
}

Tensor searchsorted_Scalar(const Tensor& sorted_sequence, const Scalar& self, bool out_int32,
                           bool right, std::optional<std::string_view> side, const Tensor& sorter) {
  RL_CHECK(sorted_sequence.dim() == 1,
           "searchsorted(): a number as input needs boundaries of 1 dimension, but they have ",
           sorted_sequence.dim());
  Tensor value = make_number(self, sorted_sequence.device());
  if (is_differentiable(sorted_sequence.dtype())) {  // else it need not be between two of them
    value = value.to(sorted_sequence.dtype());
  }
  return rushlight::searchsorted(sorted_sequence, value, out_int32, right, side, sorter);
}

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  RL_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
           boundaries.dim(), ")");
  return rushlight::searchsorted(boundaries, self, out_int32, right);
}
Tensor bucketize_Scalar(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  return composite::bucketize(make_number(self, boundaries.device()), boundaries, out_int32, right);
}

}  // namespace composite

Tensor gather_along_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim,
                             const Tensor& indices) {
  if (sizes.empty()) {
    return grad.reshape({});
  }
  return rushlight::zeros(sizes, grad.options()).scatter(dim, indices, grad);
}

}  // namespace rushlight
