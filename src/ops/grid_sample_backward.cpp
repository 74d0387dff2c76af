// The gradients of grid_sampler over public ops, tap by tap as its kernel adds them
// (kernels/grid_sample.h): slower, but they can be differentiated.
#include <utility>

#include "kernels/grid_sample.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

using grid_sampling::Cubic;
using grid_sampling::Linear;
using grid_sampling::Reflection;
using grid_sampling::Zeros;

// Places (batch, places) along an axis, in elements, and their slopes by the grid's coordinate.
struct Places {
  Tensor at;
  Tensor slope;
};
// One of the elements that a place takes something from, and how much.
struct Tap {
  Tensor index;
  Tensor inside;
  Tensor weight;
  Tensor slope;
};

Places clip_positions(const Places& p, double last) {
  const Tensor within = p.at.gt(0).logical_and(p.at.lt(last));
  const Tensor end = zeros_like(p.at).masked_fill(p.at.ge(last), last);
  return {where(within, p.at, end), where(within, p.slope, 0)};
}

Places reflect(const Places& p, double size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5;
  const double span = align_corners ? size - 1 : size;
  if (span <= 0) {
    return {zeros_like(p.at), zeros_like(p.slope)};
  }
  const Tensor offset = p.at - low;
  const Tensor behind = offset.lt(0);
  const Tensor distance = where(behind, -offset, offset);
  const Tensor rest = distance.fmod(span);
  const Tensor odd = (distance / span).floor().fmod(2).ne(0);
  return {where(odd, span - rest, rest) + low, where(behind.logical_xor(odd), -p.slope, p.slope)};
}

Places pad_positions(const Places& p, double size, int64_t padding, bool align_corners) {
  if (padding == Zeros) {
    return p;
  }
  return clip_positions(padding == Reflection ? reflect(p, size, align_corners) : p, size - 1);
}

Tap tap_of(const Tensor& element, double size, Tensor weight, Tensor slope) {
  const Tensor inside = element.ge(0).logical_and(element.lt(size));
  return {element.masked_fill(inside.logical_not(), 0).to(kInt64), inside, std::move(weight),
          std::move(slope)};
}

// Cubic convolution, as `cubic_tap`.
std::pair<Tensor, Tensor> cubic_weight(int t, const Tensor& part) {
  constexpr double a = -0.75;
  const Tensor x = t == 0 ? part + 1 : t == 1 ? part : t == 2 ? 1 - part : 2 - part;
  const double sign = t < 2 ? 1 : -1;
  if (t == 0 || t == 3) {
    return {((x * a - 5 * a) * x + 8 * a) * x - 4 * a, ((x * (3 * a) - 10 * a) * x + 8 * a) * sign};
  }
  return {(x * (a + 2) - (a + 3)) * x * x + 1, ((x * (3 * (a + 2)) - 2 * (a + 3)) * x) * sign};
}

std::vector<Tap> taps_along(const Tensor& coordinate, int64_t length, int64_t mode, int64_t padding,
                            bool align_corners) {
  const double size = static_cast<double>(length);
  const double scale = (align_corners ? size - 1 : size) / 2;
  Places p = {(coordinate + 1) * scale + (align_corners ? 0 : -0.5),
              rushlight::full_like(coordinate, scale)};
  if (mode != Cubic) {
    p = pad_positions(p, size, padding, align_corners);
  }
  if (mode != Cubic && mode != Linear) {
    return {tap_of(p.at.round(), size, ones_like(p.at), zeros_like(p.at))};
  }
  const Tensor low = p.at.detach().floor();
  const Tensor part = p.at - low;
  if (mode == Linear) {
    return {tap_of(low, size, 1 - part, -p.slope), tap_of(low + 1, size, part, p.slope)};
  }
  std::vector<Tap> taps;
  for (int t = 0; t < 4; t++) {
    const auto [weight, slope] = cubic_weight(t, part);
    const Tensor element = pad_positions({low + (t - 1), low}, size, padding, align_corners).at;
    taps.push_back(tap_of(element, size, weight, slope * p.slope));
  }
  return taps;
}

}  // namespace

std::tuple<Tensor, Tensor> grid_sampler_gradients_by_taps(const Tensor& grad, const Tensor& input,
                                                          const Tensor& grid, int64_t mode,
                                                          int64_t padding, bool align_corners,
                                                          std::array<bool, 2> mask) {
  const ScalarType dtype = accumulation_dtype(input.dtype());
  const Tensor planes = input.to(dtype).flatten(2);
  const Tensor change = grad.to(dtype).flatten(2);
  const Tensor coordinates = grid.to(dtype).flatten(1, -2);
  const auto dims = static_cast<size_t>(grid.size(-1));
  std::vector<std::vector<Tap>> axes;
  size_t count = 1;
  for (size_t d = 0; d < dims; d++) {
    const auto axis = static_cast<int64_t>(d);
    axes.push_back(taps_along(coordinates.select(-1, axis), input.size(-1 - axis), mode, padding,
                              align_corners));
    count *= axes[d].size();
  }
  Tensor of_input = zeros_like(planes);
  std::vector<Tensor> of_grid(dims, zeros_like(coordinates.select(-1, 0)));
  for (size_t t = 0; t < count; t++) {
    std::vector<const Tap*> along;
    for (size_t d = 0, rest = t; d < dims; rest /= axes[d].size(), d++) {
      along.push_back(&axes[d][rest % axes[d].size()]);
    }
    Tensor place = along[0]->index;
    Tensor outside = along[0]->inside.logical_not();
    int64_t stride = 1;
    for (size_t d = 1; d < dims; d++) {
      stride *= input.size(-static_cast<int64_t>(d));
      place = place + along[d]->index * stride;
      outside = outside.logical_or(along[d]->inside.logical_not());
    }
    place = place.unsqueeze(1).expand(change.sizes());
    // The weights of a tap along all axes, along one of them its slope.
    const auto product = [&](size_t sloped) {
      Tensor weight = sloped == 0 ? along[0]->slope : along[0]->weight;
      for (size_t d = 1; d < dims; d++) {
        weight = weight * (sloped == d ? along[d]->slope : along[d]->weight);
      }
      return weight.masked_fill(outside, 0);
    };
    if (mask[0]) {
      of_input = of_input.scatter_add(2, place, change * product(dims).unsqueeze(1));
    }
    if (mask[1]) {
      const Tensor value = (planes.gather(2, place) * change).sum(1);
      for (size_t d = 0; d < dims; d++) {
        of_grid[d] = of_grid[d] + value * product(d);
      }
    }
  }
  return {mask[0] ? of_input.reshape(input.sizes()) : Tensor(),
          mask[1] ? rushlight::stack(of_grid, -1).reshape(grid.sizes()) : Tensor()};
}

}  // namespace rushlight
