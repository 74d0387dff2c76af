// Reductions above the kernels: what their shape functions call, composites, derivatives.
#include <algorithm>
#include <cmath>

#include <rushlight/batching.h>

#include "core/refusals.h"
#include "ops/derivatives.h"
#include "ops/reductions.h"

namespace rushlight {

// ---- contracts ----

namespace {

DimVector sizes_left(const char* name, const Tensor& self, IntArrayRef reduced, bool all,
                     bool keepdim, Reduces how) {
  if (how == Reduces::Some) {
    RL_CHECK(!all || self.numel() != 0, name,
             "(): Expected reduction dim to be specified for input.numel() == 0: there is no "
             "element to choose.");
    for (int64_t d : reduced) {
      RL_CHECK_INDEX(self.dim() == 0 || self.size(d) != 0, name, "(): Expected reduction dim ", d,
                     " to have elements: it has none to choose from");
    }
  }
  return all && !keepdim ? DimVector() : reduced_sizes(self.sizes(), reduced, keepdim);
}

// How many elements there are for each result.
int64_t count_of_each(const Tensor& self, const std::optional<DimVector>& dim) {
  if (!dim.has_value() || dim->empty() || self.numel() == 0) {
    return self.numel();
  }
  int64_t count = 1;
  for (int64_t d : *dim) {
    d = wrap_dim(d, self.dim());
    count *= self.dim() == 0 ? 1 : self.size(d);
  }
  return count;
}

}  // namespace

DimVector sizes_without(const char* name, const Tensor& self, DimVector& dim, bool keepdim,
                        Reduces how) {
  const bool all = dim.empty() && how != Reduces::Listed;
  dim = wrap_dims(dim, self.dim(), all);
  return sizes_left(name, self, dim, all, keepdim, how);
}
DimVector sizes_without(const char* name, const Tensor& self, std::optional<DimVector>& dim,
                        bool keepdim, Reduces how) {
  if (!dim.has_value()) {
    dim = wrap_dims({}, self.dim());
    return sizes_left(name, self, *dim, true, keepdim, how);
  }
  return sizes_without(name, self, *dim, keepdim, how);
}
DimVector sizes_without(const char* name, const Tensor& self, int64_t& dim, bool keepdim,
                        Reduces how) {
  dim = wrap_dim(dim, self.dim());
  return sizes_left(name, self, dim, false, keepdim, how);
}
DimVector sizes_without(const char* name, const Tensor& self, std::optional<int64_t>& dim,
                        bool keepdim, Reduces how) {
  return dim.has_value() ? sizes_without(name, self, *dim, keepdim, how)
                         : sizes_without(name, self, NoDim(), keepdim, how);
}
DimVector sizes_without(const char* name, const Tensor& self, NoDim, bool keepdim, Reduces how) {
  const DimVector all = wrap_dims({}, self.dim());
  return sizes_left(name, self, all, true, keepdim, how);
}

DimVector sizes_of_rows(const Tensor& self, int64_t& dim) {
  dim = wrap_dim(dim, self.dim());
  return self.sizes();
}

ScalarType sum_dtype(const Tensor& self, const std::optional<ScalarType>& dtype) {
  if (dtype.has_value()) {
    warn_of_lost_parts(self.dtype(), *dtype);
    return *dtype;
  }
  return is_differentiable(self.dtype()) ? self.dtype() : kInt64;
}
ScalarType mean_dtype(const Tensor& self, const std::optional<ScalarType>& dtype) {
  const ScalarType result = dtype.value_or(self.dtype());
  RL_CHECK(is_differentiable(result),
           "mean(): ", dtype.has_value() ? "the dtype" : "the input's dtype",
           " must be either a floating point or complex dtype. Got: ", enum_name(result),
           ": mean(dtype=torch.float32) converts first");
  warn_of_lost_parts(self.dtype(), result);
  return result;
}
ScalarType truth_dtype(const Tensor& self) { return self.dtype() == kUInt8 ? kUInt8 : kBool; }

void check_not_complex(const char* name, const Tensor& self) {
  RL_CHECK(!self.is_complex(), name, " does not support complex inputs");
}
void check_ordered(const char* name, const Tensor& self) {
  RL_CHECK_NOT_IMPLEMENTED(!self.is_complex(), name, "(): does not support complex input");
}
void check_extremes(const Tensor& self, const std::optional<int64_t>& dim) {
  check_ordered("aminmax", self);
  RL_CHECK(dim.has_value() || self.numel() != 0,
           "aminmax(): cannot compute aminmax over an empty dimension: it has no least element.");
}
void check_position(const char* name, const Tensor& self, const std::optional<int64_t>& dim) {
  check_ordered(name, self);
  RL_CHECK(self.dtype() != kBool, name, "(): does not support bool input");
  RL_CHECK_INDEX(dim.has_value() || self.numel() != 0, name,
                 "(): Expected reduction dim to be specified for input.numel() == 0.");
}

void check_variance(const char* name, const Tensor& self, const std::optional<DimVector>& dim,
                    const std::optional<Scalar>& correction) {
  RL_CHECK(is_differentiable(self.dtype()), name,
           ": only floating point and complex numbers are supported, not ",
           enum_name(self.dtype()));
  const int64_t count = count_of_each(self, dim);
  const double subtracted = correction.has_value() ? correction->toDouble() : 1.0;
  if (static_cast<double>(count) <= subtracted && !self.is_meta()) {
    warn(str(name, "(): degrees of freedom is <= 0: of ", count,
             " elements each, less the correction of ", subtracted, ", none is left to divide by"));
  }
}

void check_vector_norm(const Tensor& self, const Scalar& ord, const std::optional<DimVector>& dim,
                       const std::optional<ScalarType>& dtype) {
  RL_CHECK(is_differentiable(self.dtype()),
           "linalg.vector_norm: the dtype must be floating point or complex, not ",
           enum_name(self.dtype()));
  RL_CHECK(!ord.is_complex(), "linalg.vector_norm: Expected a non-complex scalar for ord, but got ",
           ord);
  if (dtype.has_value()) {
    RL_CHECK(is_differentiable(*dtype),
             "linalg.vector_norm: dtype should be floating point or complex. Got ",
             enum_name(*dtype));
    RL_CHECK(
        is_complex(*dtype) == self.is_complex() && promote_types(self.dtype(), *dtype) == *dtype,
        "linalg.vector_norm: the dtype of the input (", enum_name(self.dtype()),
        ") should be convertible without narrowing to the specified dtype (", enum_name(*dtype),
        ")");
  }
  const double p = ord.as<double>();
  if (p < 0 || p == INFINITY) {
    for (int64_t d : wrap_dims(dim.value_or(DimVector()), self.dim())) {
      RL_CHECK(self.dim() == 0 || self.size(d) != 0, "linalg.vector_norm cannot compute the ", p,
               " norm on the dimension ", d,
               ", which is empty: such a norm of no elements has no value");
    }
  }
}

namespace composite {

Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  if (!self.is_complex()) {
    return rushlight::_logsumexp(self, dim, keepdim);
  }
  // The largest real part is taken out where it is finite.
  const Tensor largest = rushlight::real(self.detach()).amax(dim, true);
  const Tensor top = largest.masked_fill(largest.isinf(), Scalar(0));
  const Tensor sum = self.sub(top).exp().sum(dim, true).log().add(top);
  return keepdim ? sum
                 : sum.reshape(reduced_sizes(self.sizes(), wrap_dims(dim, self.dim()), false));
}

Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
               std::optional<ScalarType> dtype) {
  RL_CHECK(is_differentiable(self.dtype()),
           "nanmean(): expected a floating point or complex input, but got ",
           enum_name(self.dtype()));
  const Tensor count = self.isnan().logical_not().sum(dim, keepdim);
  return self.nansum(dim, keepdim, dtype).div(count);
}

Tensor max_other(const Tensor& self, const Tensor& other) {
  return rushlight::maximum(self, other);
}
Tensor min_other(const Tensor& self, const Tensor& other) {
  return rushlight::minimum(self, other);
}

Tensor var_unbiased(const Tensor& self, bool unbiased) {
  return rushlight::var(self, {}, Scalar(unbiased ? 1 : 0));
}
Tensor var_dim(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  return rushlight::var(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
Tensor std_unbiased(const Tensor& self, bool unbiased) {
  return rushlight::std(self, {}, Scalar(unbiased ? 1 : 0));
}
Tensor std_dim(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  return rushlight::std(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
std::tuple<Tensor, Tensor> var_mean_unbiased(const Tensor& self, bool unbiased) {
  return rushlight::var_mean(self, {}, Scalar(unbiased ? 1 : 0));
}
std::tuple<Tensor, Tensor> var_mean_dim(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                        bool keepdim) {
  return rushlight::var_mean(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
std::tuple<Tensor, Tensor> std_mean_unbiased(const Tensor& self, bool unbiased) {
  return rushlight::std_mean(self, {}, Scalar(unbiased ? 1 : 0));
}
std::tuple<Tensor, Tensor> std_mean_dim(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                        bool keepdim) {
  return rushlight::std_mean(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}

Tensor norm(const Tensor& self, const std::optional<Scalar>& p, OptionalIntArrayRef dim,
            bool keepdim, std::optional<ScalarType> dtype) {
  return rushlight::linalg_vector_norm(self, p.value_or(Scalar(2)), dim, keepdim, dtype);
}

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return self.sub(other).norm(p);
}

}  // namespace composite

// ---- derivatives ----

Tensor expand_reduced(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dim,
                      bool keepdim) {
  if (sizes.empty()) {
    return grad;
  }
  Tensor full = grad;
  if (!keepdim) {
    DimVector kept(sizes);
    for (int64_t d : wrap_dims(dim.value_or({}), static_cast<int64_t>(sizes.size()))) {
      kept[d] = 1;
    }
    full = full.reshape(kept);
  }
  return full.expand(sizes);
}

Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dim, bool keepdim) {
  const int64_t count = grad.numel() == 0 ? 1 : product(sizes) / grad.numel();
  return expand_reduced(grad.div(Scalar(count)), sizes, dim, keepdim);
}

namespace {

// The product of all other elements along the last dimension.
Tensor product_of_others(const Tensor& self) {
  const int64_t n = self.size(-1);
  const Tensor one = rushlight::ones_like(self.narrow(-1, 0, 1));
  const Tensor before = rushlight::cat({one, self.narrow(-1, 0, n - 1).cumprod(-1)}, -1);
  const Tensor after =
      rushlight::cat({one, self.narrow(-1, 1, n - 1).flip({-1}).cumprod(-1)}, -1).flip({-1});
  return before.mul(after);
}

}  // namespace

Tensor prod_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                     OptionalIntArrayRef dim, bool keepdim) {
  if (self.numel() == 0) {
    return rushlight::zeros_like(self);
  }
  if (self.dim() == 0) {
    return grad;
  }
  const Tensor wide = expand_reduced(grad, self.sizes(), dim, keepdim);
  if (!batching::all_of(self.detach().eq(Scalar(0))).any().item<bool>()) {
    return wide.mul(expand_reduced(result, self.sizes(), dim, keepdim).conj()).div(self.conj());
  }
  // Reduced dimensions go last and become one.
  const DimVector reduced = wrap_dims(dim.value_or({}), self.dim());
  DimVector order;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) {
      order.push_back(d);
    }
  }
  const auto kept = static_cast<int64_t>(order.size());
  for (int64_t d : reduced) {
    order.push_back(d);
  }
  DimVector back(order.size());
  for (size_t i = 0; i < order.size(); i++) {
    back[order[i]] = static_cast<int64_t>(i);
  }
  const Tensor moved = self.permute(order);
  const Tensor others = product_of_others(moved.flatten(kept)).reshape(moved.sizes()).permute(back);
  return wide.mul(others.conj());
}

Tensor extreme_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                        OptionalIntArrayRef dim, bool keepdim) {
  const Tensor value = expand_reduced(result, self.sizes(), dim, keepdim);
  const Tensor chosen = self.eq(value).logical_or(self.isnan().logical_and(value.isnan()));
  const DimVector dims = wrap_dims(dim.value_or({}), self.dim());
  const Tensor count = chosen.sum(dims, true);
  return expand_reduced(grad, self.sizes(), dim, keepdim).mul(chosen).div(count);
}

Tensor aminmax_backward(const Tensor& grad_min, const Tensor& grad_max, const Tensor& self,
                        const Tensor& min, const Tensor& max, std::optional<int64_t> dim,
                        bool keepdim) {
  const OptionalIntArrayRef dims =
      dim.has_value() ? OptionalIntArrayRef(*dim) : OptionalIntArrayRef();
  return extreme_backward(grad_min, self, min, dims, keepdim)
      .add(extreme_backward(grad_max, self, max, dims, keepdim));
}

Tensor scatter_along(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& indices,
                     bool keepdim) {
  if (sizes.empty()) {
    return grad;
  }
  const Tensor zeros = rushlight::zeros(sizes, grad.options());
  if (keepdim) {
    return zeros.scatter(dim, indices, grad);
  }
  return zeros.scatter(dim, indices.unsqueeze(dim), grad.unsqueeze(dim));
}

Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim) {
  const int64_t n = grad.numel() == 0 ? 1 : self.numel() / grad.numel();
  const double divisor =
      static_cast<double>(n) - (correction.has_value() ? correction->as<double>() : 1.0);
  const Tensor scaled = expand_reduced(grad.mul(Scalar(2.0 / (divisor < 0 ? 0.0 : divisor))),
                                       self.sizes(), dim, keepdim);
  const DimVector dims = wrap_dims(dim.value_or({}), self.dim());
  return scaled.mul(self.sub(self.mean(dims, true)));
}

Tensor std_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                    OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
                    bool keepdim) {
  // A constant slice has no slope that is worth following: zero.
  const Tensor slope = grad.div(result.mul(Scalar(2))).masked_fill(result.eq(Scalar(0)), Scalar(0));
  return var_backward(slope, self, dim, correction, keepdim);
}

Tensor vector_norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord,
                            OptionalIntArrayRef dim, bool keepdim, const Tensor& result) {
  const double p = ord.as<double>();
  if (p == 0) {
    return rushlight::zeros_like(self);
  }
  if (std::isnan(p)) {
    return rushlight::full_like(self, ord);
  }
  const Tensor g = expand_reduced(grad, self.sizes(), dim, keepdim);
  const Tensor norm = expand_reduced(result, self.sizes(), dim, keepdim);
  if (p == 1) {
    return self.sgn().mul(g);
  }
  if (p == 2) {
    return self.div(norm).mul(g).masked_fill(norm.eq(Scalar(0)), Scalar(0));
  }
  if (std::isinf(p)) {
    const Tensor size = self.abs();
    const DimVector dims = wrap_dims(dim.value_or({}), self.dim());
    // The norm of complex numbers may differ from their largest size by a rounding.
    const Tensor extreme = !self.is_complex() ? norm
                           : p > 0            ? size.amax(dims, true)
                                              : size.amin(dims, true);
    const Tensor chosen = size.eq(extreme).logical_or(size.isnan());
    const Tensor count = chosen.sum(dims, true);
    return self.sgn().mul(chosen).mul(g.div(count));
  }
  // The power of a share neither overflows nor vanishes where that of an element would. Where self
  // or the norm is zero it may be infinite.
  const Tensor zero = norm.eq(Scalar(0));
  const Tensor share = self.abs().div(norm.masked_fill(zero, Scalar(1)));
  const Tensor flat = p < 2 ? self.eq(Scalar(0)).logical_or(zero) : zero;
  const Tensor power = share.masked_fill(flat, Scalar(1)).pow(Scalar(p - 1));
  return self.sgn().mul(power).mul(g).masked_fill(flat, Scalar(0));
}

Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                          IntArrayRef dim, bool keepdim) {
  const Tensor safe = result.masked_fill(result.eq(Scalar(-INFINITY)), Scalar(0));
  const Tensor share =
      rushlight::_exp_difference(self, expand_reduced(safe, self.sizes(), dim, keepdim));
  return expand_reduced(grad, self.sizes(), dim, keepdim).mul(share);
}

}  // namespace rushlight
