// An image at given places, in coordinates from -1 to 1, by the formulas of
// src/cpu/isa/grid_sample.cpp: a thread for each element of the result. The gradient of the image
// is added up by atomic operations.
#include "cuda/atomic.cuh"
#include "cuda/each.cuh"
#include "generated/column.h"
#include "kernels/math.h"

namespace rushlight {

namespace cuda {

namespace {

enum Mode { Linear, Nearest, Cubic };
enum Padding { Zeros, Border, Reflection };

struct Geometry {
  int64_t batches;
  int64_t channels;
  int64_t places = 1;
  int dims;
  int64_t size[3] = {1, 1, 1};    // in the order of the grid's coordinates: width, height, depth
  int64_t stride[3] = {0, 0, 0};  // in elements of a plane
  int64_t area = 1;
  int64_t mode;
  int64_t padding;
  bool align_corners;

  Geometry(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align)
      : batches(input.size(0)),
        channels(input.size(1)),
        dims(static_cast<int>(input.dim()) - 2),
        mode(mode),
        padding(padding),
        align_corners(align) {
    for (int d = 0; d < dims; d++) {
      size[d] = input.size(-1 - d);
      stride[d] = area;
      area *= size[d];
      places *= grid.size(1 + d);
    }
  }
  __device__ int taps() const { return mode == Cubic ? 4 : mode == Linear ? 2 : 1; }
};

template <class T>
struct Place {
  T at;
  T slope;  // by the grid's coordinate
};

template <class T>
__device__ Place<T> clipped(Place<T> p, int64_t size) {
  const T last = static_cast<T>(size - 1);
  if (!(p.at > T(0))) {
    return {T(0), T(0)};
  }
  return p.at >= last ? Place<T>{last, T(0)} : p;
}

// Back and forth between the ends, which are the outermost middles or edges of elements.
template <class T>
__device__ Place<T> reflected(Place<T> p, int64_t size, bool align) {
  const T low = align ? T(0) : T(-0.5);
  const T span = static_cast<T>(align ? size - 1 : size);
  if (!(span > T(0))) {
    return {T(0), T(0)};
  }
  T distance = p.at - low;
  if (distance < T(0)) {
    distance = -distance;
    p.slope = -p.slope;
  }
  const T extra = ::fmod(distance, span);
  const bool even = ::fmod(::floor(distance / span), T(2)) == T(0);
  return even ? Place<T>{extra + low, p.slope} : Place<T>{span - extra + low, -p.slope};
}

template <class T>
__device__ Place<T> padded(Place<T> p, int64_t size, const Geometry& g) {
  if (g.padding == Border) {
    return clipped(p, size);
  }
  if (g.padding == Reflection) {
    return clipped(reflected(p, size, g.align_corners), size);
  }
  return p;
}

// A whole number within reach of the image; far outside where x is huge or NaN.
template <class T>
__device__ int64_t whole(T x, int64_t size) {
  const T low = T(-4);
  const T high = static_cast<T>(size) + T(4);
  const T raised = x > low ? x : low;  // NaN, too
  return static_cast<int64_t>(raised < high ? raised : high);
}

// One axis' share of the taps of a place: -1 or less, or the size or more, lies outside.
template <class T>
struct Line {
  int64_t at[4] = {};
  T weight[4] = {T(1)};
  T slope[4] = {};

  __device__ Line() = default;
  __device__ Line(T coordinate, int d, const Geometry& g) {
    const int64_t size = g.size[d];
    // From -1..1 to elements: -1 is the middle of the first one, or its edge.
    const T scale = static_cast<T>(g.align_corners ? size - 1 : size) / 2;
    Place<T> p{(coordinate + 1) * scale + (g.align_corners ? T(0) : T(-0.5)), scale};
    if (g.mode != Cubic && g.padding != Zeros) {
      p = padded(p, size, g);
    }
    if (g.mode == Nearest) {
      at[0] = whole(::rint(p.at), size);
      return;
    }
    const T low = ::floor(p.at);
    if (g.mode == Linear) {
      at[0] = whole(low, size);
      at[1] = at[0] + 1;
      weight[0] = low + 1 - p.at;
      weight[1] = p.at - low;
      slope[0] = -p.slope;
      slope[1] = p.slope;
      return;
    }
    constexpr T a = T(-0.75);
    const T part = p.at - low;
    const T distance[4] = {part + 1, part, 1 - part, 2 - part};
    for (int t = 0; t < 4; t++) {
      const T x = distance[t];
      const bool far = t == 0 || t == 3;
      const T sign = t < 2 ? T(1) : T(-1);
      weight[t] =
          far ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : ((a + 2) * x - (a + 3)) * x * x + 1;
      slope[t] = sign * p.slope *
                 (far ? (3 * a * x - 10 * a) * x + 8 * a : (3 * (a + 2) * x - 2 * (a + 3)) * x);
      at[t] = whole(padded(Place<T>{low - 1 + static_cast<T>(t), T(0)}, size, g).at, size);
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
  const int each = g.taps();
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
               meet<Add>(sums + plane * g.area + element, value * weight);
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
