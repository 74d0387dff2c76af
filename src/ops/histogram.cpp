// Histograms of elements and of points, over other ops.
#include <cmath>
#include <limits>

#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight::composite {

namespace {

// What a histogram of points (n, dimensions) with edges may be given; `sizes`: a weight's.
void check_points(const Tensor& points, TensorList edges, const Tensor& weight, IntArrayRef sizes) {
  for (size_t d = 0; d < edges.size(); d++) {
    RL_CHECK(edges[d].dim() == 1 && edges[d].numel() > 0,
             "histogramdd: edges are vectors, but the bins tensor for dimension ", d, " has shape ",
             edges[d].sizes());
    RL_CHECK(edges[d].numel() > 1, "torch.histogram(): bins must be > 0, but got 0 for dimension ",
             d);
    RL_CHECK(edges[d].dtype() == points.dtype(),
             "histogramdd: points and edges must have the same dtype, but are ",
             enum_name(points.dtype()), " and, for dimension ", d, ", ",
             enum_name(edges[d].dtype()));
  }
  if (weight.defined()) {
    RL_CHECK(weight.dtype() == points.dtype(),
             "histogramdd: expected weight to have the dtype of input, ", enum_name(points.dtype()),
             ", but it has ", enum_name(weight.dtype()));
    RL_CHECK(weight.sizes() == sizes,
             "histogramdd: expected weight to have the shape of input without its last dimension, ",
             sizes, ", but it has ", weight.sizes());
  }
}

// How many points, or what weight of them, lies in each box between the edges.
std::tuple<Tensor, std::vector<Tensor>> count_points(const Tensor& points, TensorList edges,
                                                     const Tensor& weight, bool density) {
  const NoGradGuard no_grad;
  const TensorOptions options = points.options();
  DimVector sizes;
  std::vector<Tensor> kept;
  Tensor inside;
  Tensor place = rushlight::zeros({points.size(0)}, options.dtype(kInt64));
  for (size_t d = 0; d < edges.size(); d++) {
    const Tensor& edge = edges[d];
    const int64_t bins = edge.numel() - 1;
    const Tensor x = points.select(1, static_cast<int64_t>(d)).contiguous();
    const Tensor here = x.ge(edge.select(0, 0)).logical_and(x.le(edge.select(0, bins)));
    inside = inside.defined() ? inside.logical_and(here) : here;
    // The last bin holds its upper edge.
    const Tensor bin = rushlight::searchsorted(edge.contiguous(), x, false, true) - 1;
    place = place * bins + bin.clamp(0, bins - 1);
    sizes.push_back(bins);
    kept.push_back(edge.clone());
  }
  Tensor hist = rushlight::zeros({product(sizes)}, options);
  if (inside.defined()) {
    const Tensor amount = weight.defined() ? weight.reshape({-1})
                                           : rushlight::ones({1}, options).expand({points.size(0)});
    hist = hist.index_add(0, place, where(inside, amount, 0));
  }
  hist = hist.reshape(sizes);
  if (density) {
    hist = hist / hist.sum();
    for (size_t d = 0; d < edges.size(); d++) {
      DimVector along(edges.size(), 1);
      along[d] = sizes[d];
      hist = hist / edges[d].diff().reshape(along);
    }
  }
  return {hist, kept};
}

void check_dtype(const Tensor& self) {
  if (self.dtype() != kFloat32 && self.dtype() != kFloat64) {
    dtype_not_implemented("histogramdd", self.dtype());
  }
}

// The edges of equal bins over `range`, or over the values of x.
Tensor equal_bins(const Tensor& x, int64_t bins, const double* range, int64_t d) {
  RL_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension ", d);
  RL_CHECK(bins < std::numeric_limits<int64_t>::max(),
           "torch.histogram(): bins is too large: ", bins);
  double low = 0;
  double high = 1;
  if (range != nullptr) {
    low = range[0];
    high = range[1];
    RL_CHECK(low <= high, "histogramdd: min should not exceed max: the range of dimension ", d,
             " is ", low, " to ", high);
  } else if (x.numel() > 0 && !x.is_meta()) {
    low = x.min().item<double>();
    high = x.max().item<double>();
  }
  RL_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", d,
           "'s range [", low, ", ", high, "] is not finite");
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  return rushlight::linspace(low, high, bins + 1, x.options());
}

std::vector<Tensor> equal_bins(const Tensor& points, IntArrayRef bins,
                               std::optional<ArrayRef<double>> range) {
  RL_CHECK(!range.has_value() || range->size() == 2 * bins.size(),
           "histogramdd: range holds two numbers for each of ", bins.size(),
           " dimensions, but got ", range.has_value() ? range->size() : 0);
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); d++) {
    const Tensor column = points.detach().select(1, static_cast<int64_t>(d));
    edges.push_back(equal_bins(column, bins[d], range.has_value() ? range->data() + 2 * d : nullptr,
                               static_cast<int64_t>(d)));
  }
  return edges;
}

void check_dims(const Tensor& self) {
  RL_CHECK(self.dim() >= 2, "histogramdd: input tensor should have at least 2 dimensions, but has ",
           self.dim());
}

// The points of histogramdd as rows.
Tensor points_of(const Tensor& self, size_t bins) {
  check_dims(self);
  RL_CHECK(
      static_cast<int64_t>(bins) == self.size(-1),
      "histogramdd: expected the number of bins to be equal to the innermost dimension of input, ",
      self.size(-1), ", but got ", bins);
  check_dtype(self);
  return self.flatten(0, -2);
}

}  // namespace

std::tuple<Tensor, std::vector<Tensor>> histogramdd_TensorList_bins(const Tensor& self,
                                                                    TensorList bins,
                                                                    std::optional<ArrayRef<double>>,
                                                                    const Tensor& weight,
                                                                    bool density) {
  const Tensor points = points_of(self, bins.size());
  check_points(points, bins, weight, self.sizes().slice(0, static_cast<size_t>(self.dim()) - 1));
  return count_points(points, bins, weight, density);
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, IntArrayRef bins,
                                                    std::optional<ArrayRef<double>> range,
                                                    const Tensor& weight, bool density) {
  const std::vector<Tensor> edges = equal_bins(points_of(self, bins.size()), bins, range);
  return composite::histogramdd_TensorList_bins(self, edges, range, weight, density);
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd_int_bins(const Tensor& self, int64_t bins,
                                                             std::optional<ArrayRef<double>> range,
                                                             const Tensor& weight, bool density) {
  check_dims(self);
  const DimVector each(static_cast<size_t>(self.size(-1)), bins);
  return composite::histogramdd(self, each, range, weight, density);
}

std::tuple<Tensor, Tensor> histogram_bins_tensor(const Tensor& self, const Tensor& bins,
                                                 const Tensor& weight, bool density) {
  check_dtype(self);
  const Tensor points = self.flatten().unsqueeze(1);
  check_points(points, bins, weight, self.sizes());
  const auto [hist, edges] = count_points(points, bins, weight, density);
  return {hist, edges[0]};
}
std::tuple<Tensor, Tensor> histogram_bin_ct(const Tensor& self, int64_t bins,
                                            std::optional<ArrayRef<double>> range,
                                            const Tensor& weight, bool density) {
  check_dtype(self);
  const Tensor edges = equal_bins(self.flatten().unsqueeze(1), IntArrayRef(bins), range)[0];
  return composite::histogram_bins_tensor(self, edges, weight, density);
}

}  // namespace rushlight::composite
