// An image at given places, in coordinates from -1 to 1. The taps of a block of places are worked
// out once and serve all channels. Gradients of the image belong to one task per plane, those of
// the grid to one per place: threads change no bit.
#include <cmath>

#include "core/parallel.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t block = 64;  // places that share a table of taps
constexpr int max_taps = 16;
enum Mode { Linear, Nearest, Cubic };
enum Padding { Zeros, Border, Reflection };

struct Geometry {
  int64_t batches;
  int64_t channels;
  int64_t places;
  int dims;           // 2 or 3
  int64_t size[3];    // in the order of the grid's coordinates: width, height, depth
  int64_t stride[3];  // in elements of a plane
  int64_t area = 1;
  int64_t mode;
  int64_t padding;
  bool align_corners;

  Geometry(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align)
      : batches(input.size(0)),
        channels(input.size(1)),
        places(1),
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

// Weighted elements of a plane for each place: at[t][i] is -1 where the tap lies outside, slope is
// the derivative of the weight by each coordinate of the grid.
template <class T>
struct Taps {
  int count;
  int32_t at[max_taps][block];
  T weight[max_taps][block];
  T slope[3][max_taps][block];
};

template <class T>
struct Place {
  T at;
  T slope;  // by the grid's coordinate
};

// From -1..1 to elements.
template <class T>
Place<T> in_elements(T x, int64_t size, bool align) {
  if (align) {
    return {(x + 1) / 2 * static_cast<T>(size - 1), static_cast<T>(size - 1) / 2};
  }
  return {((x + 1) * static_cast<T>(size) - 1) / 2, static_cast<T>(size) / 2};
}

template <class T>
Place<T> clipped(Place<T> p, int64_t size) {
  const T last = static_cast<T>(size - 1);
  if (!(p.at > T(0))) {
    return {T(0), T(0)};
  }
  return p.at >= last ? Place<T>{last, T(0)} : p;
}

// Back and forth between the ends, which are the outermost middles or edges of elements.
template <class T>
Place<T> reflected(Place<T> p, int64_t size, bool align) {
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
  const T extra = std::fmod(distance, span);
  const bool even = std::fmod(std::floor(distance / span), T(2)) == T(0);
  return even ? Place<T>{extra + low, p.slope} : Place<T>{span - extra + low, -p.slope};
}

template <class T>
Place<T> padded(Place<T> p, int64_t size, const Geometry& g) {
  if (g.padding == Border) {
    return clipped(p, size);
  }
  if (g.padding == Reflection) {
    return clipped(reflected(p, size, g.align_corners), size);
  }
  return p;
}

// A whole number, far outside of any image where x is huge or NaN.
template <class T>
int64_t whole(T x) {
  constexpr T bound = T(int64_t{1} << 33);
  return x > -bound && x < bound ? static_cast<int64_t>(x) : -int64_t{1} << 34;
}

// One axis' share of the taps of a place.
template <class T>
struct Share {
  int64_t at[4];
  T weight[4];
  T slope[4];
};

template <class T>
Share<T> share_of(T coordinate, int64_t size, const Geometry& g) {
  Share<T> s = {};
  Place<T> p = in_elements(coordinate, size, g.align_corners);
  if (g.mode == Cubic) {
    const T low = std::floor(p.at);
    const T part = p.at - low;
    constexpr T a = T(-0.75);
    const T d[4] = {part + 1, part, 1 - part, 2 - part};
    for (int t = 0; t < 4; t++) {
      const bool far = t == 0 || t == 3;
      const T x = d[t];
      const T sign = t < 2 ? T(1) : T(-1);
      s.weight[t] =
          far ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : ((a + 2) * x - (a + 3)) * x * x + 1;
      s.slope[t] = sign * p.slope *
                   (far ? (3 * a * x - 10 * a) * x + 8 * a : (3 * (a + 2) * x - 2 * (a + 3)) * x);
      s.at[t] = whole(padded(Place<T>{low - 1 + static_cast<T>(t), T(0)}, size, g).at);
    }
    return s;
  }
  p = padded(p, size, g);
  if (g.mode == Nearest) {
    s.at[0] = whole(std::nearbyint(p.at));
    s.weight[0] = 1;
    return s;
  }
  const T low = std::floor(p.at);
  s.at[0] = whole(low);
  s.at[1] = s.at[0] + 1;
  s.weight[0] = low + 1 - p.at;
  s.weight[1] = p.at - low;
  s.slope[0] = -p.slope;
  s.slope[1] = p.slope;
  return s;
}

template <class S, class T>
void find_taps(Taps<T>& taps, const S* grid, int64_t n, const Geometry& g, bool slopes) {
  const int each = g.mode == Cubic ? 4 : g.mode == Linear ? 2 : 1;
  taps.count = each * each * (g.dims == 3 ? each : 1);
  for (int64_t i = 0; i < n; i++) {
    Share<T> share[3] = {};
    for (int d = 0; d < g.dims; d++) {
      share[d] = share_of<T>(static_cast<T>(grid[i * g.dims + d]), g.size[d], g);
    }
    for (int t = 0; t < taps.count; t++) {
      const int part[3] = {t % each, t / each % each, t / each / each};
      T weight = 1;
      int64_t at = 0;
      bool inside = true;
      for (int d = 0; d < g.dims; d++) {
        const int64_t x = share[d].at[part[d]];
        inside &= x >= 0 && x < g.size[d];
        at += inside ? x * g.stride[d] : 0;
        weight *= share[d].weight[part[d]];
      }
      taps.at[t][i] = inside ? static_cast<int32_t>(at) : -1;
      taps.weight[t][i] = weight;
      for (int d = 0; slopes && d < g.dims; d++) {
        T slope = share[d].slope[part[d]];
        for (int e = 0; e < g.dims; e++) {
          slope *= e == d ? T(1) : share[e].weight[part[e]];
        }
        taps.slope[d][t][i] = slope;
      }
    }
  }
}

// Images share out their channels in groups, their places in blocks.
constexpr int64_t channel_group = 16;

template <class S>
void sample(const Tensor& out, const Tensor& input, const Tensor& grid, const Geometry& g) {
  using T = compute_t<S>;
  const S* from = input.data<S>();
  const S* places = grid.data<S>();
  S* to = out.data<S>();
  const int64_t blocks = num_chunks(0, g.places, block);
  const int64_t grain = std::max<int64_t>(1, 256 / std::max<int64_t>(1, g.channels));
  parallel_for(0, g.batches * blocks, grain, [&](int64_t begin, int64_t end) {
    Taps<T> taps;
    T sums[block];
    for (int64_t task = begin; task < end; task++) {
      const int64_t image = task / blocks;
      const int64_t first = task % blocks * block;
      const int64_t n = std::min(block, g.places - first);
      find_taps<S, T>(taps, places + (image * g.places + first) * g.dims, n, g, false);
      for (int64_t c = 0; c < g.channels; c++) {
        const S* plane = from + (image * g.channels + c) * g.area;
        std::fill_n(sums, block, T(0));
        for (int t = 0; t < taps.count; t++) {
          const int32_t* at = taps.at[t];
          const T* weight = taps.weight[t];
          for (int64_t i = 0; i < n; i++) {
            const T value = static_cast<T>(plane[std::max(at[i], 0)]) * weight[i];
            sums[i] += at[i] < 0 ? T(0) : value;
          }
        }
        S* row = to + (image * g.channels + c) * g.places + first;
        for (int64_t i = 0; i < n; i++) {
          row[i] = S(sums[i]);
        }
      }
    }
  });
}

template <class S>
void input_gradient(const Tensor& out, const Tensor& grad, const Tensor& grid, const Geometry& g) {
  using T = compute_t<S>;
  const S* from = grad.data<S>();
  const S* places = grid.data<S>();
  S* to = out.data<S>();
  const int64_t groups = num_chunks(0, g.channels, channel_group);
  parallel_for(0, g.batches * groups, 1, [&](int64_t begin, int64_t end) {
    Taps<T> taps;
    const Scratch<T> sums(channel_group * g.area);
    for (int64_t task = begin; task < end; task++) {
      const int64_t image = task / groups;
      const int64_t c0 = task % groups * channel_group;
      const int64_t channels = std::min(channel_group, g.channels - c0);
      std::fill_n(sums.data(), channels * g.area, T(0));
      for (int64_t first = 0; first < g.places; first += block) {
        const int64_t n = std::min(block, g.places - first);
        find_taps<S, T>(taps, places + (image * g.places + first) * g.dims, n, g, false);
        for (int64_t c = 0; c < channels; c++) {
          const S* row = from + (image * g.channels + c0 + c) * g.places + first;
          T* const plane = sums + c * g.area;
          for (int64_t i = 0; i < n; i++) {
            const T value = static_cast<T>(row[i]);
            for (int t = 0; t < taps.count; t++) {
              if (taps.at[t][i] >= 0) {
                plane[taps.at[t][i]] += value * taps.weight[t][i];
              }
            }
          }
        }
      }
      S* const planes = to + (image * g.channels + c0) * g.area;
      for (int64_t i = 0; i < channels * g.area; i++) {
        planes[i] = S(sums[i]);
      }
    }
  });
}

template <class S>
void grid_gradient(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& grid,
                   const Geometry& g) {
  using T = compute_t<S>;
  const S* images = input.data<S>();
  const S* from = grad.data<S>();
  const S* places = grid.data<S>();
  S* to = out.data<S>();
  const int64_t blocks = num_chunks(0, g.places, block);
  parallel_for(0, g.batches * blocks, 1, [&](int64_t begin, int64_t end) {
    Taps<T> taps;
    T sums[3][block];
    for (int64_t task = begin; task < end; task++) {
      const int64_t image = task / blocks;
      const int64_t first = task % blocks * block;
      const int64_t n = std::min(block, g.places - first);
      find_taps<S, T>(taps, places + (image * g.places + first) * g.dims, n, g, true);
      std::fill_n(&sums[0][0], 3 * block, T(0));
      for (int64_t c = 0; c < g.channels; c++) {
        const S* plane = images + (image * g.channels + c) * g.area;
        const S* row = from + (image * g.channels + c) * g.places + first;
        for (int t = 0; t < taps.count; t++) {
          const int32_t* at = taps.at[t];
          for (int d = 0; d < g.dims; d++) {
            const T* slope = taps.slope[d][t];
            for (int64_t i = 0; i < n; i++) {
              const T value =
                  static_cast<T>(plane[std::max(at[i], 0)]) * slope[i] * static_cast<T>(row[i]);
              sums[d][i] += at[i] < 0 ? T(0) : value;
            }
          }
        }
      }
      S* const result = to + (image * g.places + first) * g.dims;
      for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < g.dims; d++) {
          result[i * g.dims + d] = S(sums[d][i]);
        }
      }
    }
  });
}

}  // namespace

void grid_sampler(const Tensor& out, const Tensor& input, const Tensor& grid, int64_t mode,
                  int64_t padding, bool align_corners) {
  if (out.numel() == 0) {
    return;
  }
  const Geometry g(input, grid, mode, padding, align_corners);
  visit_dtype<set_floating>("grid_sampler", input.dtype(), [&](auto tag) {
    sample<typename decltype(tag)::type>(out, input, grid, g);
  });
}

void _grid_sampler_backward(const Tensor& grad_input, const Tensor& grad_grid,
                            const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                            int64_t mode, int64_t padding, bool align_corners) {
  const Geometry g(input, grid, mode, padding, align_corners);
  visit_dtype<set_floating>("grid_sampler_backward", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    input_gradient<S>(grad_input, grad_output, grid, g);
    grid_gradient<S>(grad_grid, grad_output, input, grid, g);
  });
}

}  // namespace rushlight::cpu::RL_ISA
