// What windows see whose taps are moved: columns for a product with the weight, and the gradients.
// The places of one tap of a block of windows are worked out once for all channels of a group.
// Gradients of the image belong to one task per group of planes, those of places to one per tap:
// threads change no bit.
#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t block = 256;  // windows

struct Geometry {
  Geometry(const Tensor& input, const Tensor& offset, IntArrayRef kernel, IntArrayRef strides,
           IntArrayRef paddings, IntArrayRef dilations)
      : images(input.size(0)),
        channels(input.size(1)),
        size{input.size(2), input.size(3)},
        windows{offset.size(2), offset.size(3)},
        kernel_width(kernel[1]),
        taps(kernel[0] * kernel[1]),
        groups(offset.size(1) / (2 * taps)),
        stride{strides[0], strides[1]},
        padding{paddings[0], paddings[1]},
        dilation{dilations[0], dilations[1]} {}
  const int64_t images;
  const int64_t channels;
  const int64_t size[2];
  const int64_t windows[2];
  const int64_t kernel_width;
  const int64_t taps;
  const int64_t groups;
  const int64_t stride[2];
  const int64_t padding[2];
  const int64_t dilation[2];
  int64_t area() const { return size[0] * size[1]; }
  int64_t places() const { return windows[0] * windows[1]; }
  int64_t in_group() const { return channels / groups; }
};

// The four pixels around each place, -1 outside of the image; their weights, without the factor;
// and what the weights change by when the place moves.
template <class T>
struct Corners {
  int32_t at[4][block];
  T weight[4][block];
  T slope[2][4][block];
  T factor[block];
};

// Corners of windows first..first + n of a tap of a group (`row` of all images' taps).
template <class S, class T>
void find_corners(Corners<T>& c, const S* offset, const S* factor, int64_t row, int64_t first,
                  int64_t n, const Geometry& g) {
  const int64_t tap = row % g.taps;
  const int64_t shift[2] = {tap / g.kernel_width * g.dilation[0] - g.padding[0],
                            tap % g.kernel_width * g.dilation[1] - g.padding[1]};
  for (int64_t i = 0; i < n; i++) {
    const int64_t window = first + i;
    const int64_t place[2] = {window / g.windows[1], window % g.windows[1]};
    bool inside = true;
    int64_t low[2] = {};
    T part[2] = {};
    for (int d = 0; d < 2; d++) {
      const T at = static_cast<T>(place[d] * g.stride[d] + shift[d]) +
                   static_cast<T>(offset[(2 * row + d) * g.places() + window]);
      if (at > T(-1) && at < static_cast<T>(g.size[d])) {
        const T floor = std::floor(at);
        low[d] = static_cast<int64_t>(floor);
        part[d] = at - floor;
      } else {
        inside = false;
      }
    }
    c.factor[i] = factor == nullptr ? T(1) : static_cast<T>(factor[row * g.places() + window]);
    for (int corner = 0; corner < 4; corner++) {
      const int far[2] = {corner / 2, corner % 2};
      const int64_t y = low[0] + far[0];
      const int64_t x = low[1] + far[1];
      const bool seen = inside && y >= 0 && y < g.size[0] && x >= 0 && x < g.size[1];
      const T of_row = far[0] != 0 ? part[0] : T(1) - part[0];
      const T of_column = far[1] != 0 ? part[1] : T(1) - part[1];
      c.at[corner][i] = seen ? static_cast<int32_t>(y * g.size[1] + x) : -1;
      c.weight[corner][i] = of_row * of_column;
      c.slope[0][corner][i] = far[0] != 0 ? of_column : -of_column;
      c.slope[1][corner][i] = far[1] != 0 ? of_row : -of_row;
    }
  }
}

// Calls f(row of taps, first window, n, corners): rows begin..end, window after window.
template <class S, class F>
void for_blocks(const Tensor& offset, const Tensor& factor, int64_t begin, int64_t end,
                const Geometry& g, const F& f) {
  using T = compute_t<S>;
  Corners<T> corners;
  for (int64_t row = begin; row < end; row++) {
    for (int64_t first = 0; first < g.places(); first += block) {
      const int64_t n = std::min(block, g.places() - first);
      find_corners(corners, offset.data<S>(), factor.defined() ? factor.data<S>() : nullptr, row,
                   first, n, g);
      f(row, first, n, corners);
    }
  }
}

template <class S>
void columns(const Tensor& out, const Tensor& input, const Tensor& offset, const Tensor& factor,
             const Geometry& g) {
  using T = compute_t<S>;
  parallel_for(0, g.images * g.groups * g.taps, 1, [&](int64_t begin, int64_t end) {
    for_blocks<S>(offset, factor, begin, end, g,
                  [&](int64_t row, int64_t first, int64_t n, const Corners<T>& k) {
                    const int64_t group = row / g.taps;
                    for (int64_t c = group * g.in_group(); c < (group + 1) * g.in_group(); c++) {
                      const S* plane = input.data<S>() + c * g.area();
                      S* to = out.data<S>() + (c * g.taps + row % g.taps) * g.places() + first;
                      for (int64_t i = 0; i < n; i++) {
                        T sum = 0;
                        for (int corner = 0; corner < 4; corner++) {
                          const int32_t at = k.at[corner][i];
                          const T pixel = static_cast<T>(plane[std::max(at, 0)]);
                          sum += at < 0 ? T(0) : pixel * k.weight[corner][i];
                        }
                        to[i] = S(sum * k.factor[i]);
                      }
                    }
                  });
  });
}

template <class S>
void image_gradient(const Tensor& out, const Tensor& grad, const Tensor& offset,
                    const Tensor& factor, const Geometry& g) {
  using T = compute_t<S>;
  constexpr int64_t some = 8;  // channels of a task
  const int64_t tasks = (g.in_group() + some - 1) / some;
  parallel_for(0, g.images * g.groups * tasks, 1, [&](int64_t begin, int64_t end) {
    // Sums of 16-bit floats are kept in floats.
    const Scratch<T> memory(std::is_same_v<S, T> ? 0 : some * g.area());
    for (int64_t task = begin; task < end; task++) {
      const int64_t group = task / tasks;
      const int64_t begin_channel = group * g.in_group() + task % tasks * some;
      const int64_t end_channel = std::min((group + 1) * g.in_group(), begin_channel + some);
      S* const to = out.data<S>() + begin_channel * g.area();
      T* sums;
      if constexpr (std::is_same_v<S, T>) {
        sums = to;
      } else {
        sums = memory;
      }
      const int64_t elements = (end_channel - begin_channel) * g.area();
      std::fill_n(sums, elements, T(0));
      for_blocks<S>(offset, factor, group * g.taps, (group + 1) * g.taps, g,
                    [&](int64_t row, int64_t first, int64_t n, const Corners<T>& k) {
                      for (int64_t c = begin_channel; c < end_channel; c++) {
                        const S* from =
                            grad.data<S>() + (c * g.taps + row % g.taps) * g.places() + first;
                        T* plane = sums + (c - begin_channel) * g.area();
                        for (int64_t i = 0; i < n; i++) {
                          const T value = static_cast<T>(from[i]) * k.factor[i];
                          for (int corner = 0; corner < 4; corner++) {
                            if (k.at[corner][i] >= 0) {
                              plane[k.at[corner][i]] += value * k.weight[corner][i];
                            }
                          }
                        }
                      }
                    });
      if constexpr (!std::is_same_v<S, T>) {
        for (int64_t i = 0; i < elements; i++) {
          to[i] = S(sums[i]);
        }
      }
    }
  });
}

// Of offsets and of factors.
template <class S>
void place_gradients(const Tensor& of_offset, const Tensor& of_factor, const Tensor& grad,
                     const Tensor& input, const Tensor& offset, const Tensor& factor,
                     const Geometry& g) {
  using T = compute_t<S>;
  parallel_for(0, g.images * g.groups * g.taps, 1, [&](int64_t begin, int64_t end) {
    T sums[3][block];
    for_blocks<S>(
        offset, factor, begin, end, g,
        [&](int64_t row, int64_t first, int64_t n, const Corners<T>& k) {
          for (T* sum : sums) {
            std::fill_n(sum, n, T(0));
          }
          const int64_t group = row / g.taps;
          for (int64_t c = group * g.in_group(); c < (group + 1) * g.in_group(); c++) {
            const S* plane = input.data<S>() + c * g.area();
            const S* from = grad.data<S>() + (c * g.taps + row % g.taps) * g.places() + first;
            for (int64_t i = 0; i < n; i++) {
              const T value = static_cast<T>(from[i]);
              for (int corner = 0; corner < 4; corner++) {
                const int32_t at = k.at[corner][i];
                const T pixel = at < 0 ? T(0) : value * static_cast<T>(plane[std::max(at, 0)]);
                sums[0][i] += pixel * k.slope[0][corner][i] * k.factor[i];
                sums[1][i] += pixel * k.slope[1][corner][i] * k.factor[i];
                sums[2][i] += pixel * k.weight[corner][i];
              }
            }
          }
          for (int64_t i = 0; i < n; i++) {
            of_offset.data<S>()[2 * row * g.places() + first + i] = S(sums[0][i]);
            of_offset.data<S>()[(2 * row + 1) * g.places() + first + i] = S(sums[1][i]);
            if (factor.defined()) {
              of_factor.data<S>()[row * g.places() + first + i] = S(sums[2][i]);
            }
          }
        });
  });
}

}  // namespace

void _deform_columns(const Tensor& out, const Tensor& input, const Tensor& offset,
                     const Tensor& factor, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation) {
  const Geometry g(input, offset, kernel, stride, padding, dilation);
  visit_dtype<set_floating>("deform_conv2d", input.dtype(), [&](auto tag) {
    columns<typename decltype(tag)::type>(out, input, offset, factor, g);
  });
}

void _deform_columns_backward(const Tensor& grad_input, const Tensor& grad_offset,
                              const Tensor& grad_factor, const Tensor& grad, const Tensor& input,
                              const Tensor& offset, const Tensor& factor, IntArrayRef kernel,
                              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation) {
  const Geometry g(input, offset, kernel, stride, padding, dilation);
  visit_dtype<set_floating>("deform_conv2d_backward", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    image_gradient<S>(grad_input, grad, offset, factor, g);
    place_gradients<S>(grad_offset, grad_factor, grad, input, offset, factor, g);
  });
}

}  // namespace rushlight::cpu::RL_ISA
