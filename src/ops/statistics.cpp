// Statistics and calculus over other ops.
#include <algorithm>
#include <cmath>
#include <limits>

#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace composite {

namespace {

// The dimension that a reduction named by `dim` leaves last: self moved, or flattened.
Tensor with_last(const Tensor& self, std::optional<int64_t> dim) {
  return dim.has_value() ? self.movedim(*dim, int64_t{-1}) : self.flatten();
}

Tensor quantile_of(const char* name, const Tensor& self, const Tensor& q,
                   std::optional<int64_t> dim, bool keepdim, std::string_view interpolation,
                   bool ignore_nan) {
  RL_CHECK(self.numel() > 0, name, "() input tensor must be non-empty");
  RL_CHECK(q.dim() <= 1, name, "() q must be a scalar or 1D tensor");
  RL_CHECK(self.dtype() == kFloat32 || self.dtype() == kFloat64, name,
           "() input tensor must be either float or double dtype");
  RL_CHECK(q.dtype() == self.dtype(), name, "(): q must have the dtype of the input, ",
           self.dtype(), ", not ", q.dtype());
  RL_CHECK(
      interpolation == "linear" || interpolation == "lower" || interpolation == "higher" ||
          interpolation == "midpoint" || interpolation == "nearest",
      name,
      "() interpolation must be 'linear', 'lower', 'higher', 'midpoint' or 'nearest', but is '",
      interpolation, "'");
  RL_CHECK(q.is_meta() || batching::all_of(q.ge(0).logical_and(q.le(1))).all().item<bool>(), name,
           "() q values must be in the range [0, 1]");
  const bool number = self.dim() == 0;  // a row of one element; it has no dimension to keep
  const Tensor rows = with_last(number ? self.reshape({1}) : self, dim);
  const Tensor values = std::get<0>(rows.sort(int64_t{-1}, false));
  const int64_t n = values.size(-1);
  // The place of each quantile among the sorted elements; NaN come last.
  DimVector sizes(values.sizes());
  const int64_t count = q.numel();
  sizes.back() = count;
  Tensor ranks;
  if (ignore_nan) {
    const Tensor last = values.isnan().logical_not().sum(-1, true) - 1;
    ranks = (q.reshape({count}) * last).clamp_min(0);
  } else {
    ranks = (q.reshape({count}) * (n - 1)).expand(sizes);
    ranks = where(values.isnan().any(-1, true), n - 1, ranks);
  }
  ranks = ranks.to(values.dtype());
  const auto at = [&](const Tensor& places) { return values.gather(-1, places.to(kInt64)); };
  Tensor out;
  if (interpolation == "lower") {
    out = at(ranks.floor());
  } else if (interpolation == "higher") {
    out = at(ranks.ceil());
  } else if (interpolation == "nearest") {
    out = at(ranks.round());
  } else {
    const Tensor below = ranks.floor();
    const Tensor weight = interpolation == "midpoint"
                              ? (ranks - below).ne(0).to(values.dtype()) * 0.5
                              : ranks - below;
    out = at(below).lerp(at(ranks.ceil()), weight);
  }
  if (keepdim && !number) {
    if (dim.has_value()) {
      out = out.unsqueeze(wrap_dim(*dim, self.dim()));
    } else {
      out = out.reshape([&] {
        DimVector ones(static_cast<size_t>(self.dim()) + 1, 1);
        ones.back() = count;
        return ones;
      }());
    }
  }
  return q.dim() == 0 ? out.squeeze(-1) : out.movedim(int64_t{-1}, int64_t{0});
}

Tensor quantile_number(const char* name, const Tensor& self, double q) {
  RL_CHECK(q >= 0 && q <= 1, name, "(): q must be in the range [0, 1], not ", q);
  RL_CHECK(self.dtype() == kFloat32 || self.dtype() == kFloat64, name,
           "() input tensor must be either float or double dtype");
  return rushlight::full({}, q, self.options());
}

}  // namespace

Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_of("quantile", self, q, dim, keepdim, interpolation, false);
}
Tensor quantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view interpolation) {
  return composite::quantile(self, quantile_number("quantile", self, q), dim, keepdim,
                             interpolation);
}
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of("nanquantile", self, q, dim, keepdim, interpolation, true);
}
Tensor nanquantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                          std::string_view interpolation) {
  return composite::nanquantile(self, quantile_number("nanquantile", self, q), dim, keepdim,
                                interpolation);
}

// ---- covariance ----

namespace {
void check_samples(const char* op, const Tensor& self) {
  RL_CHECK(self.dim() <= 2, op,
           "(): expected input to have two or fewer, variables and observations, not ", self.dim(),
           " dimensions");
}
}  // namespace

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  check_samples("cov", self);
  RL_CHECK(self.dtype() != kBool, "cov(): bool dtype is not supported for input");
  const Tensor x = self.dim() == 2 ? self : self.reshape({1, -1});
  const int64_t n = x.size(1);
  const auto check_weights = [&](const char* which, const Tensor& w, bool integral) {
    RL_CHECK(w.dim() <= 1, "cov(): expected ", which, " to have one or fewer dimensions but got ",
             which, " with ", w.dim(), " dimensions");
    RL_CHECK(integral ? is_integral(w.dtype()) : is_floating(w.dtype()), "cov(): ", which,
             " must be ", integral ? "integral" : "floating point", ", not ", enum_name(w.dtype()));
    RL_CHECK(w.numel() == n, "cov(): ", which, " has ", w.numel(), " numbers for ", n,
             " observations: it must have one for each");
    RL_CHECK(n == 0 || w.is_meta() || batching::all_of(w).min().item<double>() >= 0,
             "cov(): ", which, " cannot be negative");
  };
  Tensor w;
  if (fweights.defined()) {
    check_weights("fweights", fweights, true);
    w = fweights.reshape({-1});
  }
  if (aweights.defined()) {
    check_weights("aweights", aweights, false);
    w = w.defined() ? w * aweights.reshape({-1}) : aweights.reshape({-1});
  }
  const TensorOptions number = TensorOptions(to_floating(to_real(x.dtype()))).device(x.device());
  const Tensor total = w.defined() ? w.sum().to(number.dtype())
                                   : rushlight::full({}, static_cast<double>(n), number);
  const Tensor mean = (w.defined() ? x * w : x).sum(1, true) / total;
  Tensor freedom = total - correction;
  if (aweights.defined() && correction != 0) {
    freedom = total - (w * aweights.reshape({-1})).sum() / total * correction;
  }
  if (!freedom.is_meta() && batching::all_of(freedom).min().item<double>() <= 0) {
    warn(
        "cov(): degrees of freedom is <= 0, for correction is not less than the number of "
        "observations; the result is divided by 0.");
    freedom = freedom.clamp_min(0);
  }
  const Tensor centred = x - mean;
  const Tensor weighted = w.defined() ? centred * w : centred;
  return (weighted.to(centred.dtype()).mm(centred.adjoint()) / freedom).squeeze();
}

Tensor corrcoef(const Tensor& self) {
  check_samples("corrcoef", self);
  const Tensor c = composite::cov(self, 1, Tensor(), Tensor());
  if (c.dim() == 0) {
    return c / c;
  }
  const Tensor deviation = rushlight::real(c.diagonal()).sqrt();
  const Tensor out = c / deviation.unsqueeze(1) / deviation.unsqueeze(0);
  if (out.is_complex()) {
    return rushlight::_complex(rushlight::real(out).clamp(-1, 1),
                               rushlight::imag(out).clamp(-1, 1));
  }
  return out.clamp(-1, 1);
}

// ---- differences and integrals ----

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
            const Tensor& append) {
  RL_CHECK(self.dim() >= 1,
           "diff: a number has no neighbours: the input to be at least one-dimensional");
  RL_CHECK(n >= 0, "order must be non-negative but got ", n);
  const int64_t d = wrap_dim(dim, self.dim());
  std::vector<Tensor> parts;
  for (const Tensor* t : {&prepend, &self, &append}) {
    if (!t->defined()) {
      continue;
    }
    RL_CHECK(t->dim() == self.dim(),
             "diff expects prepend and append to have as many dimensions as input, ", self.dim(),
             ", but got ", t->dim());
    for (int64_t i = 0; i < self.dim(); i++) {
      RL_CHECK(i == d || t->size(i) == self.size(i),
               "diff expects prepend and append to have the sizes of input except along dim: "
               "input.size(",
               i, ") = ", self.size(i), ", but got tensor.size(", i, ") = ", t->size(i));
    }
    parts.push_back(*t);
  }
  if (n == 0) {  // what is put before and behind counts for differences alone
    return self.clone();
  }
  Tensor out = parts.size() == 1 ? self : cat(parts, d);
  if (n > out.size(d)) {
    n = out.size(d);
  }
  for (int64_t i = 0; i < n; i++) {
    const int64_t left = out.size(d) - 1;
    const Tensor high = out.narrow(d, 1, left);
    const Tensor low = out.narrow(d, 0, left);
    out = out.dtype() == kBool ? high.logical_xor(low) : high - low;
  }
  return out;
}

namespace {

void check_integrand(const char* name, const Tensor& y, const Tensor& x) {
  RL_CHECK(y.dtype() != kBool, name,
           ": y is bool, but bool is not supported: convert it to numbers");
  RL_CHECK(!x.defined() || x.dtype() != kBool, name,
           ": x is bool, but bool is not supported: convert it to numbers");
  existing_dim(-1, y.dim());
}

// The distances of points x along dimension d of y; x has one dimension, or as many as y at most.
Tensor point_distances(const char* name, const Tensor& y, const Tensor& x, int64_t d) {
  Tensor points = x;
  if (x.dim() <= 1) {
    RL_CHECK(x.numel() == y.size(d), name, ": ", x.numel(), " points do not go with ", y.size(d),
             " values: one `x` value for each");
    DimVector sizes(static_cast<size_t>(y.dim()), 1);
    sizes[static_cast<size_t>(d)] = x.numel();
    points = x.reshape(sizes);
  } else if (x.dim() < y.dim()) {
    DimVector sizes(static_cast<size_t>(y.dim() - x.dim()), 1);
    for (const int64_t s : x.sizes()) {
      sizes.push_back(s);
    }
    points = x.reshape(sizes);
  }
  const int64_t along = d + points.dim() - y.dim();
  const int64_t n = points.size(along);
  return points.narrow(along, 1, n - 1) - points.narrow(along, 0, n - 1);
}

// Sums of neighbours along d.
Tensor pair_sums(const Tensor& y, int64_t d) {
  const int64_t n = y.size(d) - 1;
  return y.narrow(d, 0, n) + y.narrow(d, 1, n);
}

Tensor empty_integral(const Tensor& y, int64_t d) {
  DimVector sizes(y.sizes());
  sizes.erase(static_cast<size_t>(d));
  return rushlight::zeros(sizes, y.options());
}

}  // namespace

Tensor trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  check_integrand("trapezoid", y, x);
  const int64_t d = wrap_dim(dim, y.dim());
  if (y.size(d) == 0) {
    return empty_integral(y, d);
  }
  const Tensor steps = point_distances("trapezoid", y, x, d);
  return (steps * pair_sums(y, d)).sum(d) / 2;
}

Tensor trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  check_integrand("trapezoid", y, Tensor());
  const int64_t d = wrap_dim(dim, y.dim());
  const int64_t n = y.size(d);
  if (n == 0) {
    return empty_integral(y, d);
  }
  return (y.sum(d) * 2 - y.select(d, 0) - y.select(d, n - 1)) * dx / 2;
}

Tensor trapz_x(const Tensor& y, const Tensor& x, int64_t dim) {
  return composite::trapezoid_x(y, x, dim);
}
Tensor trapz_dx(const Tensor& y, double dx, int64_t dim) {
  return composite::trapezoid_dx(y, dx, dim);
}

Tensor cumulative_trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  check_integrand("cumulative_trapezoid", y, x);
  const int64_t d = wrap_dim(dim, y.dim());
  if (y.size(d) == 0) {
    return y.div(Scalar(2));
  }
  return (point_distances("cumulative_trapezoid", y, x, d) * pair_sums(y, d)).cumsum(d) / 2;
}

Tensor cumulative_trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  check_integrand("cumulative_trapezoid", y, Tensor());
  const int64_t d = wrap_dim(dim, y.dim());
  if (y.size(d) == 0) {
    return y.div(Scalar(2));
  }
  return pair_sums(y, d).cumsum(d) * dx / 2;
}

namespace {

// The derivative, at one of three places in turn, of the parabola through its values there; `low`
// and `high` are the distances between neighbours.
struct Places {
  Tensor low;
  Tensor high;
  Tensor slope_at_first(const Tensor& a, const Tensor& b, const Tensor& c) const {
    return -(low * 2 + high) / (low * (low + high)) * a + (low + high) / (low * high) * b -
           low / (high * (low + high)) * c;
  }
  Tensor slope_at_second(const Tensor& a, const Tensor& b, const Tensor& c) const {
    return -high / (low * (low + high)) * a + (high - low) / (low * high) * b +
           low / (high * (low + high)) * c;
  }
};

// Slopes along one dimension; `gaps`: the distances between samples, in the shape of one line, or
// one for all.
Tensor gradient_along_dim(const Tensor& self, int64_t d, const Tensor& gaps, int64_t edge_order) {
  const int64_t n = self.size(d);
  const bool even = gaps.numel() == 1 && n > 2;
  const auto values = [&](int64_t from, int64_t length) { return self.narrow(d, from, length); };
  const auto gap = [&](int64_t from, int64_t length) {
    return gaps.numel() == 1 ? gaps : gaps.narrow(d, from, length);
  };
  const auto places = [&](int64_t from, int64_t length) {
    return Places{gap(from, length), gap(from + 1, length)};
  };
  Tensor first;
  Tensor last;
  if (edge_order == 1) {
    first = (values(1, 1) - values(0, 1)) / gap(0, 1);
    last = (values(n - 1, 1) - values(n - 2, 1)) / gap(n - 2, 1);
  } else {
    first = places(0, 1).slope_at_first(values(0, 1), values(1, 1), values(2, 1));
    const Places end = {gap(n - 2, 1), gap(n - 3, 1)};  // seen from behind
    last = -end.slope_at_first(values(n - 1, 1), values(n - 2, 1), values(n - 3, 1));
  }
  if (n == 2) {
    return cat({first, last}, d);
  }
  const Tensor inner =
      even ? (values(2, n - 2) - values(0, n - 2)) / (gaps * 2)
           : places(0, n - 2).slope_at_second(values(0, n - 2), values(1, n - 2), values(2, n - 2));
  return cat({first, inner, last}, d);
}

// Slopes along each of `dims`; `gaps(i, d)` gives the distances along d, the i-th of them.
template <class F>
std::vector<Tensor> gradient_along(const Tensor& self, IntArrayRef dims, size_t spacings,
                                   int64_t edge_order, const F& gaps) {
  RL_CHECK(spacings == dims.size(), "gradient: spacing is a number, or one for each of ",
           dims.size(), " dimensions, not ", spacings);
  RL_CHECK(edge_order == 1 || edge_order == 2,
           "torch.gradient only supports edge_order=1 and edge_order=2.");
  const DimVector wrapped = wrap_dims(dims, self.dim(), false);
  std::vector<Tensor> out;
  for (size_t i = 0; i < wrapped.size(); i++) {
    const int64_t d = wrapped[i];
    RL_CHECK(self.size(d) >= edge_order + 1,
             "torch.gradient expected a size of at least edge_order+1 in dimension ", d,
             ", but got ", self.size(d));
    DimVector line(static_cast<size_t>(self.dim()), 1);
    const Tensor distances = gaps(i, d);
    line[static_cast<size_t>(d)] = distances.numel();
    out.push_back(gradient_along_dim(self, d, distances.reshape(line), edge_order));
  }
  return out;
}

DimVector all_dims(const Tensor& self, std::optional<int64_t> dim) {
  if (dim.has_value()) {
    return {*dim};
  }
  DimVector dims;
  for (int64_t d = 0; d < self.dim(); d++) {
    dims.push_back(d);
  }
  return dims;
}

}  // namespace

std::vector<Tensor> gradient_scalarrayarray(const Tensor& self, ArrayRef<Scalar> spacing,
                                            IntArrayRef dim, int64_t edge_order) {
  const TensorOptions options = TensorOptions(to_floating(self.dtype())).device(self.device());
  return gradient_along(self, dim, spacing.size(), edge_order, [&](size_t i, int64_t) {
    return rushlight::full({1}, spacing[i], options);
  });
}
std::vector<Tensor> gradient_scalarrayint(const Tensor& self, ArrayRef<Scalar> spacing,
                                          std::optional<int64_t> dim, int64_t edge_order) {
  return composite::gradient_scalarrayarray(self, spacing, all_dims(self, dim), edge_order);
}
std::vector<Tensor> gradient_scalararray(const Tensor& self, const Scalar& spacing, IntArrayRef dim,
                                         int64_t edge_order) {
  const std::vector<Scalar> each(dim.size(), spacing);
  return composite::gradient_scalarrayarray(self, each, dim, edge_order);
}
std::vector<Tensor> gradient_array(const Tensor& self, IntArrayRef dim, int64_t edge_order) {
  return composite::gradient_scalararray(self, 1, dim, edge_order);
}
std::vector<Tensor> gradient_scalarint(const Tensor& self, const std::optional<Scalar>& spacing,
                                       std::optional<int64_t> dim, int64_t edge_order) {
  return composite::gradient_scalararray(self, spacing.value_or(1), all_dims(self, dim),
                                         edge_order);
}
std::vector<Tensor> gradient_tensorarray(const Tensor& self, TensorList spacing, IntArrayRef dim,
                                         int64_t edge_order) {
  return gradient_along(self, dim, spacing.size(), edge_order, [&](size_t i, int64_t d) {
    const Tensor& at = spacing[i];
    RL_CHECK(at.dim() == 1 && at.numel() == self.size(d),
             "torch.gradient expected each element of spacing to have the same length as the "
             "dimension, but got ",
             at.sizes(), " for ", self.size(d), " samples");
    return at.narrow(0, 1, at.numel() - 1) - at.narrow(0, 0, at.numel() - 1);
  });
}
std::vector<Tensor> gradient_tensorarrayint(const Tensor& self, TensorList spacing,
                                            std::optional<int64_t> dim, int64_t edge_order) {
  return composite::gradient_tensorarray(self, spacing, all_dims(self, dim), edge_order);
}

Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  RL_CHECK(!p.is_complex() && p.as<double>() > 0, "renorm: non-positive-norm not supported");
  RL_CHECK(maxnorm.as<double>() >= 0, "renorm: expected maxnorm to be >= 0 but got ", maxnorm);
  RL_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(),
           " dimensions");
  const int64_t d = wrap_dim(dim, self.dim());
  DimVector others;
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i != d) {
      others.push_back(i);
    }
  }
  const Tensor size = rushlight::linalg_vector_norm(self, p, others, true);
  const Tensor factor = where(size.gt(maxnorm), (size + 1e-7).reciprocal() * maxnorm, 1);
  return self * factor;
}

Tensor& renorm_(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  return self.copy_(composite::renorm(before_write(self), p, dim, maxnorm));
}

// ---- membership ----

Tensor isin_Tensor_Tensor(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  RL_CHECK(elements.dtype() != kBool && !elements.is_complex(),
           "Unsupported input type encountered for isin(): ", enum_name(elements.dtype()));
  RL_CHECK(test_elements.dtype() != kBool && !test_elements.is_complex(),
           "Unsupported input type encountered for isin(): ", enum_name(test_elements.dtype()));
  const int64_t n = test_elements.numel();
  Tensor found;
  if (n == 0) {
    found = rushlight::zeros(elements.sizes(), TensorOptions(kBool).device(elements.device()));
  } else if (n <= 16) {
    found = elements.unsqueeze(-1).eq(test_elements.reshape({-1})).any(-1);
  } else {
    const ScalarType dtype = promote_types(elements.dtype(), test_elements.dtype());
    const Tensor sorted =
        std::get<0>(test_elements.to(dtype).reshape({-1}).sort(int64_t{-1}, false));
    const Tensor x = elements.to(dtype).contiguous();
    const Tensor place = rushlight::searchsorted(sorted, x).clamp_max(n - 1);
    found = sorted.take(place).eq(x);
  }
  return invert ? found.logical_not() : found;
}

Tensor isin_Tensor_Scalar(const Tensor& elements, const Scalar& test_element, bool, bool invert) {
  return invert ? elements.ne(test_element) : elements.eq(test_element);
}

Tensor isin_Scalar_Tensor(const Scalar& element, const Tensor& test_elements, bool assume_unique,
                          bool invert) {
  const Tensor one =
      rushlight::full({}, element, TensorOptions(element.dtype()).device(test_elements.device()));
  return composite::isin_Tensor_Tensor(one, test_elements, assume_unique, invert);
}

}  // namespace composite
}  // namespace rushlight
