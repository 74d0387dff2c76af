// An image at given places, in coordinates from -1 to 1, by the formulas of
// src/cpu/isa/image/grid_sample.cpp: a thread for each element of the result. The gradient of the
// image is added up by atomic operations.
#include "cuda/atomic.cuh"
#include "cuda/column.h"
#include "cuda/each.cuh"
#include "kernels/grid_sample.h"

namespace rushlight {

namespace cuda {

namespace {

using namespace grid_sampling;

// One axis' share of the taps of a place: -1 or less, or the size or more, lies outside.
template <class T>
struct Line {
  int64_t at[4] = {};
  T weight[4] = {T(1)};
  T slope[4] = {};

  __device__ Line() = default;
  __device__ Line(T coordinate, int d, const Geometry& g) {
    const int64_t size = g.size[d];
    Place<T> p = place_of(coordinate, size, g.align_corners);
    if (g.mode != Cubic && g.padding != Zeros) {
      p = pad_place(p, size, g);
    }
    if (g.mode == Nearest) {
      at[0] = clamp_to_index<int64_t>(::rint(p.at), size);
      return;
    }
    const T low = ::floor(p.at);
    if (g.mode == Linear) {
      at[0] = clamp_to_index<int64_t>(low, size);
      at[1] = at[0] + 1;
      weight[0] = low + 1 - p.at;
      weight[1] = p.at - low;
      slope[0] = -p.slope;
      slope[1] = p.slope;
      return;
    }
    for (int t = 0; t < 4; t++) {
      const CubicTap<T> tap = cubic_tap(t, p.at - low);
      weight[t] = tap.weight;
      slope[t] = tap.slope * p.slope;
      at[t] = clamp_to_index<int64_t>(
          pad_place(Place<T>{low - 1 + static_cast<T>(t), T(0)}, size, g).at, size);
    }
  }
};

// All taps of a place: calls f(element of a plane, weight, slopes by each coordinate) for those
// that lie inside.
template <class S, class F>
__device__ void for_taps(const S* coordinates, const Geometry& g, const F& f) {
  using T = compute_t<S>;
  Line<T> lines[3];
  for (int d = 0; d < g.dims; d++) {
    lines[d] = Line<T>(widen(coordinates[d]), d, g);
  }
  const int each = g.mode == Cubic ? 4 : g.mode == Linear ? 2 : 1;
  const int count = each * each * (g.dims == 3 ? each : 1);
  for (int t = 0; t < count; t++) {
    const int part[3] = {t % each, t / each % each, g.dims == 3 ? t / each / each : 0};
    int64_t element = 0;
    bool inside = true;
    T weight = 1;
    T slope[3] = {T(1), T(1), T(1)};
    for (int d = 0; d < g.dims; d++) {
      const int64_t x = lines[d].at[part[d]];
      inside = inside && x >= 0 && x < g.size[d];
      element += x * g.stride[d];
      weight = weight * lines[d].weight[part[d]];
      for (int e = 0; e < g.dims; e++) {
        slope[e] = slope[e] * (e == d ? lines[d].slope[part[d]] : lines[d].weight[part[d]]);
      }
    }
    if (inside) {
      f(element, weight, slope);
    }
  }
}

// Operands: image, channel and place.
Space<3> samples_of(const Geometry& g) {
  return {{g.batches, g.channels, g.places},
          {DimVector{1, 0, 0}, DimVector{0, 1, 0}, DimVector{0, 0, 1}}};
}

template <class S>
struct Sample {
  S* out;
  const S* input;
  const S* grid;
  Geometry g;
  __device__ void operator()(const int64_t (&at)[3]) const {
    using T = compute_t<S>;
    const int64_t plane = at[0] * g.channels + at[1];
    T sum = 0;
    for_taps(grid + (at[0] * g.places + at[2]) * g.dims, g,
             [&](int64_t element, T weight, const T(&)[3]) {
               sum += widen(input[plane * g.area + element]) * weight;
             });
    out[plane * g.places + at[2]] = narrow<S>(sum);
  }
};

template <class S>
struct InputGradient {
  using T = compute_t<S>;
  T* sums;
  const S* grad;
  const S* grid;
  Geometry g;
  __device__ void operator()(const int64_t (&at)[3]) const {
    const int64_t plane = at[0] * g.channels + at[1];
    const T value = widen(grad[plane * g.places + at[2]]);
    for_taps(grid + (at[0] * g.places + at[2]) * g.dims, g,
             [&](int64_t element, T weight, const T(&)[3]) {
               atomic_combine<Add>(sums + plane * g.area + element, value * weight);
             });
  }
};

template <class S>
struct GridGradient {
  S* out;
  const S* grad;
  const S* input;
  const S* grid;
  Geometry g;
  __device__ void operator()(const int64_t (&at)[2]) const {  // image, place
    using T = compute_t<S>;
    T sums[3] = {};
    const int64_t place = at[0] * g.places + at[1];
    for_taps(grid + place * g.dims, g, [&](int64_t element, T, const T(&slope)[3]) {
      for (int64_t c = 0; c < g.channels; c++) {
        const int64_t plane = at[0] * g.channels + c;
        const T factor =
            widen(input[plane * g.area + element]) * widen(grad[plane * g.places + at[1]]);
        for (int d = 0; d < g.dims; d++) {
          sums[d] += factor * slope[d];
        }
      }
    });
    for (int d = 0; d < g.dims; d++) {
      out[place * g.dims + d] = narrow<S>(sums[d]);
    }
  }
};

}  // namespace

}  // namespace cuda

void cuda::grid_sampler(const Tensor& out, const Tensor& input, const Tensor& grid, int64_t mode,
                        int64_t padding, bool align_corners) {
  if (out.numel() == 0) {
    return;
  }
  const Geometry g(input, grid, mode, padding, align_corners);
  const Launch launch(out.device());
  visit_dtype<set_floating>("grid_sampler", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    each(launch, samples_of(g), Sample<S>{out.data<S>(), input.data<S>(), grid.data<S>(), g});
  });
}

void cuda::_grid_sampler_backward(const Tensor& grad_input, const Tensor& grad_grid,
                                  const Tensor& grad_output, const Tensor& input,
                                  const Tensor& grid, int64_t mode, int64_t padding,
                                  bool align_corners) {
  const Geometry g(input, grid, mode, padding, align_corners);
  const Launch launch(grad_input.device());
  visit_dtype<set_floating>("grid_sampler_backward", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    const Tensor sums = make_empty(input.sizes(), dtype_of_v<T>, input.device());
    fill_raw(sums, 0);
    each(launch, samples_of(g),
         InputGradient<S>{sums.data<T>(), grad_output.data<S>(), grid.data<S>(), g});
    copy_raw(grad_input, sums);
    each(launch, Space<2>{{g.batches, g.places}, {DimVector{1, 0}, DimVector{0, 1}}},
         GridGradient<S>{grad_grid.data<S>(), grad_output.data<S>(), input.data<S>(),
                         grid.data<S>(), g});
  });
}

}  // namespace rushlight
