// Where the taps of an image sampled at given places stand, and what they weigh, for all devices.
// Coordinates run from -1 to 1; a place is counted in elements along one axis.
#pragma once

#include <rushlight/tensor.h>

#include "kernels/math.h"

namespace rushlight::grid_sampling {

enum Mode { Linear, Nearest, Cubic };
enum Padding { Zeros, Border, Reflection };

struct Geometry {
  int64_t batches;
  int64_t channels;
  int64_t places = 1;
  int dims;                       // 2 or 3
  int64_t size[3] = {1, 1, 1};    // in the order of the grid's coordinates: width, height, depth
  int64_t stride[3] = {0, 0, 0};  // in elements of a plane
  int64_t area = 1;
  int64_t mode;
  int64_t padding;
  bool align_corners;

  // Inlined, so that no instruction set's copy is linked into another's code.
  __attribute__((always_inline)) Geometry(const Tensor& input, const Tensor& grid, int64_t mode,
                                          int64_t padding, bool align)
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
};

template <class T>
struct Place {
  T at;
  T slope;  // by the grid's coordinate
};

// From -1..1 to elements: -1 is the middle of the first one, or its edge.
template <class T>
RL_INLINE Place<T> place_of(T coordinate, int64_t size, bool align) {
  const T scale = static_cast<T>(align ? size - 1 : size) / 2;
  return {(coordinate + 1) * scale + (align ? T(0) : T(-0.5)), scale};
}

template <class T>
RL_INLINE Place<T> clip(Place<T> p, int64_t size) {
  const T last = static_cast<T>(size - 1);
  if (!(p.at > T(0))) {
    return {T(0), T(0)};
  }
  return p.at >= last ? Place<T>{last, T(0)} : p;
}

// Back and forth between the ends, which are the outermost middles or edges of elements.
template <class T>
RL_INLINE Place<T> reflect(Place<T> p, int64_t size, bool align) {
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
  const T extra = math::fmod(distance, span);
  const bool even = math::fmod(math::floor(distance / span), T(2)) == T(0);
  return even ? Place<T>{extra + low, p.slope} : Place<T>{span - extra + low, -p.slope};
}

template <class T>
RL_INLINE Place<T> pad_place(Place<T> p, int64_t size, const Geometry& g) {
  if (g.padding == Border) {
    return clip(p, size);
  }
  if (g.padding == Reflection) {
    return clip(reflect(p, size, g.align_corners), size);
  }
  return p;
}

// A whole number within reach of the image; far outside where x is huge or NaN.
template <class Index, class T>
RL_INLINE Index clamp_to_index(T x, int64_t size) {
  const T low = T(-4);
  const T high = static_cast<T>(size) + T(4);
  const T raised = x > low ? x : low;  // NaN, too
  return static_cast<Index>(raised < high ? raised : high);
}

template <class T>
struct CubicTap {
  T weight;
  T slope;  // by the place
};
// Tap t of four for a place that is `part` past the second one: cubic convolution (Keys 1981) with
// a = -0.75.
template <class T>
RL_INLINE CubicTap<T> cubic_tap(int t, T part) {
  constexpr T a = T(-0.75);
  const T distance[4] = {part + 1, part, 1 - part, 2 - part};
  const T x = distance[t];
  const bool far = t == 0 || t == 3;
  const T sign = t < 2 ? T(1) : T(-1);
  return {far ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : ((a + 2) * x - (a + 3)) * x * x + 1,
          sign * (far ? (3 * a * x - 10 * a) * x + 8 * a : (3 * (a + 2) * x - 2 * (a + 3)) * x)};
}

}  // namespace rushlight::grid_sampling
