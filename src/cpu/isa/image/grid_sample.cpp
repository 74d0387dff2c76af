// An image at given places, in coordinates from -1 to 1. The taps of a block of places are worked
// out once and serve all channels. Gradients of the image belong to one task per plane, those of
// the grid to one per place: threads change no bit.
#include <cmath>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "core/parallel.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/grid_sample.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using namespace grid_sampling;

// Places that share a table of taps: many, so that a plane stays in the first-level cache for them.
constexpr int64_t block = 1024;
constexpr int64_t granule = 16;  // places are added in whole vectors
constexpr int max_taps = 16;
// Weighted elements of a plane for each place: at[t][i] is -1 where the tap lies outside, slope is
// the derivative of the weight by each coordinate of the grid.
template <class T>
struct Taps {
  int count;
  int32_t at[max_taps][block];
  T weight[max_taps][block];
  T slope[3][max_taps][block];
};

// One axis' share of the taps of a block of places: -1 or less, or the size or more, lies outside.
template <class T>
struct Line {
  int32_t at[4][block];
  T weight[4][block];
  T slope[4][block];
};

template <class T>
void linear_line(Line<T>& line, const Place<T>* places, int64_t n, int64_t size) {
  for (int64_t i = 0; i < n; i++) {
    const T at = places[i].at;
    const T low = std::floor(at);
    const int32_t first = clamp_to_index<int32_t>(low, size);
    line.at[0][i] = first;
    line.at[1][i] = first + 1;
    line.weight[0][i] = low + 1 - at;
    line.weight[1][i] = at - low;
    line.slope[0][i] = -places[i].slope;
    line.slope[1][i] = places[i].slope;
  }
}

template <class T>
void cubic_line(Line<T>& line, const Place<T>* places, int64_t n, int64_t size, const Geometry& g) {
  for (int64_t i = 0; i < n; i++) {
    const T low = std::floor(places[i].at);
    for (int t = 0; t < 4; t++) {
      const CubicTap<T> tap = cubic_tap(t, places[i].at - low);
      line.weight[t][i] = tap.weight;
      line.slope[t][i] = tap.slope * places[i].slope;
      const Place<T> place{low - 1 + static_cast<T>(t), T(0)};
      line.at[t][i] = clamp_to_index<int32_t>(pad_place(place, size, g).at, size);
    }
  }
}

// Where the taps of coordinate d stand, and their weights.
template <class S, class T>
void find_line(Line<T>& line, const S* grid, int64_t n, int d, const Geometry& g) {
  const int64_t size = g.size[d];
  Place<T> places[block];
  for (int64_t i = 0; i < n; i++) {
    places[i] = place_of(static_cast<T>(grid[i * g.dims + d]), size, g.align_corners);
  }
  if (g.mode != Cubic && g.padding != Zeros) {
    for (int64_t i = 0; i < n; i++) {
      places[i] = pad_place(places[i], size, g);
    }
  }
  if (g.mode == Linear) {
    linear_line(line, places, n, size);
  } else if (g.mode == Cubic) {
    cubic_line(line, places, n, size, g);
  } else {
    for (int64_t i = 0; i < n; i++) {
      line.at[0][i] = clamp_to_index<int32_t>(std::nearbyint(places[i].at), size);
      line.weight[0][i] = 1;
      line.slope[0][i] = 0;
    }
  }
}

template <class S, class T>
void find_taps(Taps<T>& taps, const S* grid, int64_t n, const Geometry& g, bool slopes) {
  const int each = g.mode == Cubic ? 4 : g.mode == Linear ? 2 : 1;
  taps.count = each * each * (g.dims == 3 ? each : 1);
  const Scratch<Line<T>> lines(3);
  for (int d = 0; d < g.dims; d++) {
    find_line<S, T>(lines[d], grid, n, d, g);
  }
  for (int t = 0; t < taps.count; t++) {
    const int part[3] = {t % each, t / each % each, t / each / each};
    int32_t* const at = taps.at[t];
    T* const weight = taps.weight[t];
    std::fill_n(at, n, 0);
    std::fill_n(at + n, block - n, -1);  // places that are not there
    std::fill_n(weight, block, T(1));
    for (int d = 0; d < g.dims; d++) {
      const int32_t* x = lines[d].at[part[d]];
      const T* w = lines[d].weight[part[d]];
      const int32_t size = static_cast<int32_t>(g.size[d]);
      const int32_t stride = static_cast<int32_t>(g.stride[d]);
      for (int64_t i = 0; i < n; i++) {
        const bool inside = at[i] >= 0 && x[i] >= 0 && x[i] < size;
        at[i] = inside ? at[i] + x[i] * stride : -1;
        weight[i] = inside ? weight[i] * w[i] : T(0);  // far outside it may be infinite
      }
    }
    for (int d = 0; slopes && d < g.dims; d++) {
      T* const slope = taps.slope[d][t];
      std::copy_n(lines[d].slope[part[d]], n, slope);
      for (int e = 0; e < g.dims; e++) {
        for (int64_t i = 0; i < n && e != d; i++) {
          slope[i] *= lines[e].weight[part[e]][i];
        }
      }
    }
  }
}

// Images share out their channels in groups, their places in blocks.
constexpr int64_t channel_group = 16;

// sums += the elements of tap t, where they lie inside.
template <class S, class T>
void add_tap(T* __restrict sums, const S* __restrict plane, const int32_t* __restrict at,
             const T* __restrict weight, int64_t n) {
  for (int64_t i = 0; i < (n + granule - 1) / granule * granule; i++) {
    const T value = static_cast<T>(plane[std::max(at[i], 0)]) * weight[i];
    sums[i] += at[i] < 0 ? T(0) : value;
  }
}
#if defined(__AVX512F__)
inline void add_tap(float* sums, const float* plane, const int32_t* at, const float* weight,
                    int64_t n) {
  const __m512 zero = _mm512_setzero_ps();
  for (int64_t i = 0; i < n; i += granule) {
    const __m512i places = _mm512_loadu_si512(at + i);
    const __mmask16 inside = _mm512_cmpge_epi32_mask(places, _mm512_setzero_si512());
    const __m512 values = _mm512_mask_i32gather_ps(zero, inside, places, plane, sizeof(float));
    const __m512 products = _mm512_mul_ps(values, _mm512_loadu_ps(weight + i));
    _mm512_storeu_ps(sums + i, _mm512_add_ps(_mm512_loadu_ps(sums + i), products));
  }
}
#endif

template <class S>
void sample(const Tensor& out, const Tensor& input, const Tensor& grid, const Geometry& g) {
  using T = compute_t<S>;
  const S* from = input.data<S>();
  const S* places = grid.data<S>();
  S* to = out.data<S>();
  const int64_t blocks = num_chunks(0, g.places, block);
  const int64_t grain = std::max<int64_t>(1, 256 / std::max<int64_t>(1, g.channels));
  parallel_for(0, g.batches * blocks, grain, [&](int64_t begin, int64_t end) {
    const Scratch<Taps<T>> memory(1);
    Taps<T>& taps = *memory;
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
          add_tap(sums, plane, taps.at[t], taps.weight[t], n);
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
    const Scratch<Taps<T>> memory(1);
    Taps<T>& taps = *memory;
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
    const Scratch<Taps<T>> memory(1);
    Taps<T>& taps = *memory;
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
