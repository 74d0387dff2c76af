// Convolutions of many small images with few channels: as many images as a vector has lanes are
// turned so that they lie side by side, and every vector is one pixel of all of them. So no lane is
// idle however narrow the rows are, no load straddles two lines of the cache, and taps outside of
// the image are left out.
//
// A task turns its images, computes all outputs (or gradients) of them, and turns the result back.
// In a turned image pixels keep the order that they have in the tensor's memory, so images may be
// in any order as long as each is dense.
#include <memory>
#include <numeric>

#include "cpu/isa/conv_axes.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int most_channels = 6;  // in a tile of results: 24 of 32 registers
constexpr int most_pixels = 4;
constexpr int most_gradients = 4;  // in a tile of the weight's gradient
constexpr int most_taps = 5;
#else
constexpr int most_channels = 6;  // 12 of 16 registers
constexpr int most_pixels = 2;
constexpr int most_gradients = 3;
constexpr int most_taps = 3;
#endif

// ---- turned images ----

// Calls f(e, n) for the squares of elements e to e + n: n is a constant for all but the last.
template <class T, class F>
inline __attribute__((always_inline)) void for_squares(int64_t elements, const F& f) {
  constexpr int64_t w = Simd<T>::width;
  int64_t e = 0;
  for (; e + w <= elements; e += w) {
    f(e, std::integral_constant<int64_t, w>());
  }
  if (e < elements) {
    f(e, elements - e);
  }
}

// Turns a square that f(i) loads: n vectors, and zeros.
template <class T, class F>
inline __attribute__((always_inline)) void load_square(
    typename Simd<T>::V (&square)[Simd<T>::width], int64_t n, const F& load) {
  constexpr int64_t w = Simd<T>::width;
  if (RL_LIKELY(n == w)) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < w; i++) {
      square[i] = load(i);
    }
  } else {
    for (int64_t i = 0; i < w; i++) {
      square[i] = i < n ? load(i) : Simd<T>::zero();
    }
  }
  transpose<T>(square);
}

template <class T, class F>
inline __attribute__((always_inline)) void store_square(
    const typename Simd<T>::V (&square)[Simd<T>::width], int64_t n, const F& store) {
  constexpr int64_t w = Simd<T>::width;
  if (RL_LIKELY(n == w)) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < w; i++) {
      store(i, square[i]);
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      store(i, square[i]);
    }
  }
}

// n images from image n0 on, which become lanes 0 to n of `to`, zeros behind them.
template <class S, class T>
void turn_images(const Images& images, int64_t n0, int64_t n, int64_t elements, T* to) {
  using V = Simd<T>;
  const int64_t step = images.strides[0];
  const S* from = static_cast<const S*>(images.data) + n0 * step;
  for_squares<T>(elements, [&](int64_t e, auto together) __attribute__((always_inline)) {
    typename V::V square[V::width];
    load_square<T>(square, n, [&](int64_t i) { return load_some(from + i * step + e, together); });
    store_square<T>(square, together,
                    [&](int64_t i, typename V::V v) { V::store(to + (e + i) * V::width, v); });
  });
}

template <class S, class T>
void turn_back(const T* from, const Images& images, int64_t n0, int64_t n, int64_t elements) {
  using V = Simd<T>;
  const int64_t step = images.strides[0];
  S* to = static_cast<S*>(images.data) + n0 * step;
  for_squares<T>(elements, [&](int64_t e, auto together) __attribute__((always_inline)) {
    typename V::V square[V::width];
    load_square<T>(square, together, [&](int64_t i) { return V::load(from + (e + i) * V::width); });
    store_square<T>(
        square, n, [&](int64_t i, typename V::V v) { store_some(to + i * step + e, v, together); });
  });
}

// Where input and output of a task are, in elements of turned images.
template <class T>
struct Steps {
  int64_t channel;
  int64_t pixel[3];
  explicit Steps(const Images& images) : channel(images.strides[1] * Simd<T>::width) {
    for (int d = 0; d < 3; d++) {
      pixel[d] = images.strides[2 + d] * Simd<T>::width;
    }
  }
};

// ---- results ----

// Taps from..to of a dimension, all that read inside of the image.
struct Reach {
  int64_t from;
  int64_t to;
  int64_t taps() const { return to - from; }
  bool operator==(const Reach&) const = default;
};

Reach reach_of(const ConvAxis& a, int64_t i, int64_t n) {
  const auto column = [&](int64_t t) {
    return a.base + i * a.stride + a.offsets[static_cast<size_t>(t)] - a.low;
  };
  const auto inside = [&](int64_t t) { return column(t) >= 0 && column(t) < n; };
  Reach r{0, static_cast<int64_t>(a.taps.size())};
  while (r.from < r.to && !inside(r.from)) {
    r.from++;
  }
  while (r.to > r.from && !inside(r.to - 1)) {
    r.to--;
  }
  return r;
}

// Neighbouring outputs of a row that have the same taps.
struct Run {
  int64_t x;
  int64_t pixels;
  Reach reach;
};

// What a tile reads: for each of `count` rows of taps, `channels` times `taps` pixels and weights.
template <class T>
struct Rows {
  const T* const* images;
  const T* const* weights;
  int64_t count;
  int64_t channels;
  int64_t taps;
  int64_t channel_step;
  int64_t weight_step;  // from channel to channel
  int64_t tap_step;
  int64_t pixel_step;
};

template <class T, int channels, int pixels>
void result_tile(const Rows<T>& rows, const T* bias, T* to, int64_t channel_step,
                 int64_t pixel_step) {
  using V = Simd<T>;
  typename V::V acc[channels][pixels];
#pragma GCC unroll 8
  for (int r = 0; r < channels; r++) {
#pragma GCC unroll 8
    for (int i = 0; i < pixels; i++) {
      acc[r][i] = V::set1(bias[r]);
    }
  }
  for (int64_t row = 0; row < rows.count; row++) {
    for (int64_t c = 0; c < rows.channels; c++) {
      const T* x = rows.images[row] + c * rows.channel_step;
      const T* weight = rows.weights[row] + c * rows.weight_step;
      for (int64_t t = 0; t < rows.taps; t++) {
        typename V::V pixel[pixels];
#pragma GCC unroll 8
        for (int i = 0; i < pixels; i++) {
          pixel[i] = V::load(x + i * rows.pixel_step);
        }
#pragma GCC unroll 8
        for (int r = 0; r < channels; r++) {
          const typename V::V factor = V::set1(weight[r]);
#pragma GCC unroll 8
          for (int i = 0; i < pixels; i++) {
            acc[r][i] = V::fma(factor, pixel[i], acc[r][i]);
          }
        }
        x += rows.tap_step;
        weight += channels;
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < channels; r++) {
#pragma GCC unroll 8
    for (int i = 0; i < pixels; i++) {
      V::store(to + r * channel_step + i * pixel_step, acc[r][i]);
    }
  }
}

template <class T>
using ResultTile = void (*)(const Rows<T>&, const T*, T*, int64_t, int64_t);

template <class T, size_t... I>
constexpr std::array<ResultTile<T>, sizeof...(I)> result_tiles(std::index_sequence<I...>) {
  return {&result_tile<T, static_cast<int>(I / most_pixels) + 1,
                       static_cast<int>(I % most_pixels) + 1>...};
}

// Channels o to o + n that a tile computes together, and where block b of all begins.
struct Blocks {
  int64_t count;
  int64_t channels;
  explicit Blocks(int64_t n, int64_t most) : count((n + most - 1) / most), channels(n) {}
  int64_t begin(int64_t b) const { return channels * b / count; }
};

// One phase of a convolution for turned images.
template <class S, class T>
class Phase {
 public:
  Phase(const Conv& c, const std::array<const ConvAxis*, 3>& axes)
      : c_(c), axes_(axes), blocks_(c.out_channels, most_channels) {
    const ConvAxis& width = *axes[2];
    for (int64_t x = 0; x < width.count; x++) {
      const Reach reach = reach_of(width, x, c.in[2]);
      if (!runs_.empty() && runs_.back().reach == reach && runs_.back().pixels < most_pixels) {
        runs_.back().pixels++;
      } else {
        runs_.push_back({x, 1, reach});
      }
    }
    size_ = c.in_channels * c.out_channels;
    for (const ConvAxis* a : axes) {
      size_ *= static_cast<int64_t>(a->taps.size());
    }
    weight_ = std::make_unique<Scratch<T>>(c.groups * size_);
    parallel_for(0, c.groups * blocks_.count,
                 std::max<int64_t>(1, 16384 * blocks_.count / (size_ + 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; b++) {
                     pack(b / blocks_.count, b % blocks_.count);
                   }
                 });
  }

  void run(const T* input, T* output) const {
    static constexpr auto tiles =
        result_tiles<T>(std::make_index_sequence<most_channels * most_pixels>());
    const Steps<T> in(c_.input);
    const Steps<T> out(c_.output);
    const ConvAxis& width = *axes_[2];
    const int64_t taps = static_cast<int64_t>(width.taps.size());
    const int64_t tap_step = taps > 1 ? (width.offsets[1] - width.offsets[0]) * in.pixel[2] : 0;
    for (int64_t d = 0; d < axes_[0]->count; d++) {
      const Reach reach_d = reach_of(*axes_[0], d, c_.in[0]);
      for (int64_t h = 0; h < axes_[1]->count; h++) {
        const Reach reach_h = reach_of(*axes_[1], h, c_.in[1]);
        const int64_t count = reach_d.taps() * reach_h.taps();
        const Scratch<const T*> images(count);
        const Scratch<const T*> weights(count);
        const int64_t y = place(0, d) * out.pixel[0] + place(1, h) * out.pixel[1];
        for (int64_t g = 0; g < c_.groups; g++) {
          for (int64_t b = 0; b < blocks_.count; b++) {
            const int64_t o = blocks_.begin(b);
            const int64_t channels = blocks_.begin(b + 1) - o;
            alignas(64) T bias[most_channels] = {};
            for (int64_t r = 0; r < channels && c_.bias != nullptr; r++) {
              bias[r] = static_cast<T>(static_cast<const S*>(c_.bias)[g * c_.out_channels + o + r]);
            }
            const T* packed = weight_->data() + g * size_ + o * (size_ / c_.out_channels);
            for (const Run& run : runs_) {
              int64_t n = 0;
              for (int64_t td = reach_d.from; td < reach_d.to; td++) {
                for (int64_t th = reach_h.from; th < reach_h.to; th++) {
                  images[n] =
                      input + g * c_.in_channels * in.channel + from(0, d, td) * in.pixel[0] +
                      from(1, h, th) * in.pixel[1] +
                      (run.reach.taps() > 0 ? from(2, run.x, run.reach.from) : 0) * in.pixel[2];
                  weights[n++] = packed + ((td * static_cast<int64_t>(axes_[1]->taps.size()) + th) *
                                               c_.in_channels * taps +
                                           run.reach.from) *
                                              channels;
                }
              }
              const Rows<T> rows{images.data(),   weights.data(),   count,
                                 c_.in_channels,  run.reach.taps(), in.channel,
                                 taps * channels, tap_step,         width.stride * in.pixel[2]};
              tiles[(channels - 1) * most_pixels + run.pixels - 1](
                  rows, bias,
                  output + (g * c_.out_channels + o) * out.channel + y +
                      place(2, run.x) * out.pixel[2],
                  out.channel, width.step * out.pixel[2]);
            }
          }
        }
      }
    }
  }

 private:
  // The output's coordinate of output i, and the input's of one of its taps.
  int64_t place(int d, int64_t i) const { return axes_[d]->first + i * axes_[d]->step; }
  int64_t from(int d, int64_t i, int64_t tap) const {
    const ConvAxis& a = *axes_[d];
    return a.base + i * a.stride + a.offsets[static_cast<size_t>(tap)] - a.low;
  }

  // Of a block: [tap of depth and height][input channel][tap of width][output channel].
  void pack(int64_t g, int64_t block) {
    const int64_t volume = c_.taps();
    const S* weight =
        static_cast<const S*>(c_.weight) + g * c_.in_channels * c_.out_channels * volume;
    const int64_t by_out = c_.transposed ? volume : c_.in_channels * volume;
    const int64_t by_in = c_.transposed ? c_.out_channels * volume : volume;
    const int64_t begin = blocks_.begin(block);
    T* to = weight_->data() + g * size_ + begin * (size_ / c_.out_channels);
    for (const int64_t d : axes_[0]->taps) {
      for (const int64_t h : axes_[1]->taps) {
        for (int64_t i = 0; i < c_.in_channels; i++) {
          for (const int64_t w : axes_[2]->taps) {
            const S* from = weight + i * by_in + (d * c_.kernel[1] + h) * c_.kernel[2] + w;
            for (int64_t o = begin; o < blocks_.begin(block + 1); o++) {
              *to++ = static_cast<T>(from[o * by_out]);
            }
          }
        }
      }
    }
  }

  const Conv& c_;
  std::array<const ConvAxis*, 3> axes_;
  const Blocks blocks_;
  std::vector<Run> runs_;
  int64_t size_;  // of a group's weights
  std::unique_ptr<Scratch<T>> weight_;
};

// Calls f(first image, number) for the images of each task.
template <class T, class F>
void for_tasks(const Conv& c, const F& f) {
  constexpr int64_t w = Simd<T>::width;
  parallel_for(0, (c.batch + w - 1) / w, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      f(t, std::min(w, c.batch - t * w));
    }
  });
}

int64_t area(const Dims3& size) { return size[0] * size[1] * size[2]; }

template <class S>
void forward_typed(const Conv& c) {
  using T = compute_t<S>;
  constexpr int64_t w = Simd<T>::width;
  const std::vector<ConvAxis> axes[3] = {axes_of(c, 0), axes_of(c, 1), axes_of(c, 2)};
  std::vector<Phase<S, T>> phases;
  for (const ConvAxis& d : axes[0]) {
    for (const ConvAxis& h : axes[1]) {
      for (const ConvAxis& x : axes[2]) {
        phases.emplace_back(c, std::array{&d, &h, &x});
      }
    }
  }
  const int64_t in = c.groups * c.in_channels * area(c.in);
  const int64_t out = c.groups * c.out_channels * area(c.out);
  for_tasks<T>(c, [&](int64_t task, int64_t images) {
    const Scratch<T> input(in * w);
    const Scratch<T> output(out * w);
    turn_images<S>(c.input, task * w, images, in, input.data());
    for (const Phase<S, T>& phase : phases) {
      phase.run(input, output);
    }
    turn_back<S>(output.data(), c.output, task * w, images, out);
  });
}

// ---- gradients of the weight ----

// Rows of the output's gradient and of the image under one row of taps.
template <class T>
struct GradientRows {
  const T* gradient;
  const T* image;    // of the first tap of the first pixel
  int64_t count[2];  // in depth and height
  int64_t gradient_steps[3];
  int64_t image_steps[3];
  int64_t gradient_channel;
  int64_t tap_step;
  int64_t width;
  int64_t inside[2];  // pixels all of whose taps are inside of the image
  int64_t column;     // of the first pixel's first tap
  int64_t stride;
  int64_t dilation;
  int64_t image_width;
};

// Sums over all rows, lane by lane, of gradients of several channels times several taps.
template <class T, int channels, int taps>
void gradient_tile(const GradientRows<T>& rows, T* to, int64_t channel_step) {
  using V = Simd<T>;
  typename V::V acc[channels][taps];
#pragma GCC unroll 8
  for (int r = 0; r < channels; r++) {
#pragma GCC unroll 8
    for (int t = 0; t < taps; t++) {
      acc[r][t] = V::zero();
    }
  }
  alignas(64) const T zeros[V::width] = {};
  const auto add = [&](const T* g, auto place) __attribute__((always_inline)) {
    typename V::V gradient[channels];
#pragma GCC unroll 8
    for (int r = 0; r < channels; r++) {
      gradient[r] = V::load(g + r * rows.gradient_channel);
    }
#pragma GCC unroll 8
    for (int t = 0; t < taps; t++) {
      const typename V::V pixel = V::load(place(t));
#pragma GCC unroll 8
      for (int r = 0; r < channels; r++) {
        acc[r][t] = V::fma(gradient[r], pixel, acc[r][t]);
      }
    }
  };
  for (int64_t d = 0; d < rows.count[0]; d++) {
    for (int64_t h = 0; h < rows.count[1]; h++) {
      const T* g = rows.gradient + d * rows.gradient_steps[0] + h * rows.gradient_steps[1];
      const T* x = rows.image + d * rows.image_steps[0] + h * rows.image_steps[1];
      const auto edge = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          add(g + i * rows.gradient_steps[2], [&](int t) {
            const int64_t column = rows.column + i * rows.stride + t * rows.dilation;
            return column >= 0 && column < rows.image_width
                       ? x + i * rows.image_steps[2] + t * rows.tap_step
                       : zeros;
          });
        }
      };
      edge(0, rows.inside[0]);
      const T* pixel = x + rows.inside[0] * rows.image_steps[2];
      const T* gradient = g + rows.inside[0] * rows.gradient_steps[2];
      for (int64_t i = rows.inside[0]; i < rows.inside[1]; i++) {
        add(gradient, [&](int t) { return pixel + t * rows.tap_step; });
        pixel += rows.image_steps[2];
        gradient += rows.gradient_steps[2];
      }
      edge(rows.inside[1], rows.width);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < channels; r++) {
#pragma GCC unroll 8
    for (int t = 0; t < taps; t++) {
      V::store(to + r * channel_step + t * V::width, acc[r][t]);
    }
  }
}

template <class T>
using GradientTile = void (*)(const GradientRows<T>&, T*, int64_t);

template <class T, size_t... I>
constexpr std::array<GradientTile<T>, sizeof...(I)> gradient_tiles(std::index_sequence<I...>) {
  return {&gradient_tile<T, static_cast<int>(I / most_taps) + 1,
                         static_cast<int>(I % most_taps) + 1>...};
}

// Outputs begin..end of `count` for which all of taps k0..k1 are inside of the image.
struct Inside {
  int64_t begin;
  int64_t end;
};
Inside inside(const Conv& c, int d, int64_t k0, int64_t k1) {
  const int64_t low = k0 * c.dilation[d] - c.padding[d];
  const int64_t high = (k1 - 1) * c.dilation[d] - c.padding[d];
  const int64_t stride = c.stride[d];
  const int64_t begin = low >= 0 ? 0 : std::min(c.out[d], (-low + stride - 1) / stride);
  const int64_t end = high >= c.in[d] ? 0 : std::min(c.out[d], (c.in[d] - 1 - high) / stride + 1);
  return {begin, std::max(begin, end)};
}

// The sums of the lanes of `n` vectors.
template <class T>
void add_lanes(const T* from, int64_t n, T* to) {
  using V = Simd<T>;
  for_squares<T>(n, [&](int64_t e, auto together) __attribute__((always_inline)) {
    typename V::V square[V::width];
    load_square<T>(square, together, [&](int64_t i) { return V::load(from + (e + i) * V::width); });
#pragma GCC unroll 4
    for (int64_t half = V::width / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (int64_t k = 0; k < half; k++) {
        square[k] = V::add(square[k], square[k + half]);
      }
    }
    store_some(to + e, square[0], together);
  });
}

// The gradient of one group's weight for turned images, in lanes: [output channel, input channel,
// tap].
template <class T>
void group_gradient(const Conv& c, const T* image, const T* gradient, T* to) {
  static constexpr auto tiles =
      gradient_tiles<T>(std::make_index_sequence<most_gradients * most_taps>());
  const Steps<T> in(c.input);
  const Steps<T> out(c.output);
  const Blocks blocks(c.out_channels, most_gradients);
  const Blocks tap_blocks(c.kernel[2], most_taps);
  const int64_t row = c.in_channels * c.taps() * Simd<T>::width;
  GradientRows<T> rows;
  rows.gradient_channel = out.channel;
  rows.width = c.out[2];
  rows.stride = c.stride[2];
  rows.dilation = c.dilation[2];
  rows.image_width = c.in[2];
  rows.tap_step = c.dilation[2] * in.pixel[2];
  for (int d = 0; d < 3; d++) {
    rows.gradient_steps[d] = out.pixel[d];
    rows.image_steps[d] = c.stride[d] * in.pixel[d];
  }
  for (int64_t b = 0; b < blocks.count; b++) {
    const int64_t o = blocks.begin(b);
    for (int64_t i = 0; i < c.in_channels; i++) {
      for (int64_t kd = 0; kd < c.kernel[0]; kd++) {
        const Inside depth = inside(c, 0, kd, kd + 1);
        for (int64_t kh = 0; kh < c.kernel[1]; kh++) {
          const Inside height = inside(c, 1, kh, kh + 1);
          for (int64_t k = 0; k < tap_blocks.count; k++) {
            const int64_t kw = tap_blocks.begin(k);
            const int64_t taps = tap_blocks.begin(k + 1) - kw;
            const Inside width = inside(c, 2, kw, kw + taps);
            const auto column = [&](int d, int64_t x, int64_t tap) {
              return x * c.stride[d] + tap * c.dilation[d] - c.padding[d];
            };
            rows.count[0] = depth.end - depth.begin;
            rows.count[1] = height.end - height.begin;
            rows.inside[0] = width.begin;
            rows.inside[1] = width.end;
            rows.column = column(2, 0, kw);
            rows.gradient = gradient + o * out.channel + depth.begin * out.pixel[0] +
                            height.begin * out.pixel[1];
            rows.image = image + i * in.channel + column(0, depth.begin, kd) * in.pixel[0] +
                         column(1, height.begin, kh) * in.pixel[1] + rows.column * in.pixel[2];
            tiles[(blocks.begin(b + 1) - o - 1) * most_taps + taps - 1](
                rows,
                to + o * row +
                    (i * c.taps() + (kd * c.kernel[1] + kh) * c.kernel[2] + kw) * Simd<T>::width,
                row);
          }
        }
      }
    }
  }
}

template <class S>
void weight_backward_typed(const Conv& c) {
  using T = compute_t<S>;
  constexpr int64_t w = Simd<T>::width;
  const int64_t in = c.groups * c.in_channels * area(c.in);
  const int64_t out = c.groups * c.out_channels * area(c.out);
  const int64_t size = c.out_channels * c.in_channels * c.taps();
  const int64_t tasks = (c.batch + w - 1) / w;
  const Scratch<T> sums(tasks * c.groups * size);
  for_tasks<T>(c, [&](int64_t task, int64_t images) {
    const Scratch<T> image(in * w);
    const Scratch<T> gradient(out * w);
    const Scratch<T> block(size * w);
    turn_images<S>(c.input, task * w, images, in, image.data());
    turn_images<S>(c.output, task * w, images, out, gradient.data());
    for (int64_t g = 0; g < c.groups; g++) {
      group_gradient<T>(c, image + g * c.in_channels * c.input.strides[1] * w,
                        gradient + g * c.out_channels * c.output.strides[1] * w, block.data());
      add_lanes<T>(block.data(), size, sums + (task * c.groups + g) * size);
    }
  });
  add_chunks(static_cast<S*>(c.weight), sums.data(), c.groups * size, tasks);
}

// ---- when ----

// The elements of an image lie in one piece, in any order.
bool is_dense(const Images& x, int64_t channels, const Dims3& size) {
  std::array<std::pair<int64_t, int64_t>, 4> dims = {{{x.strides[1], channels},
                                                      {x.strides[2], size[0]},
                                                      {x.strides[3], size[1]},
                                                      {x.strides[4], size[2]}}};
  std::sort(dims.begin(), dims.end());
  int64_t step = 1;
  for (const auto& [stride, n] : dims) {
    if (n != 1 && stride != step) {
      return false;
    }
    step *= n;
  }
  return true;
}

const char* refusal(const Conv& c) {
  const int64_t lanes = c.dtype == kFloat64 ? Simd<double>::width : Simd<float>::width;
  const int64_t tasks = (c.batch + lanes - 1) / lanes;
  if (tasks < 2 || c.batch * 4 < tasks * lanes * 3) {
    return "few images";
  }
  const int64_t in = c.groups * c.in_channels;
  const int64_t out = c.groups * c.out_channels;
  // A task's images and weights must stay near.
  constexpr int64_t most = int64_t{1} << 15;
  if (in * area(c.in) + out * area(c.out) + c.in_channels * out * c.taps() > most) {
    return "large images";
  }
  if (c.out_channels > 32 || c.in_channels > 32) {
    return "many channels";
  }
  if (!is_dense(c.input, in, c.in) || !is_dense(c.output, out, c.out)) {
    return "images with gaps";
  }
  return nullptr;
}

const char* forward(const Conv& c) {
  const char* why = refusal(c);
  if (why == nullptr) {
    visit_dtype<set_floating>("convolution", c.dtype,
                              [&](auto tag) { forward_typed<typename decltype(tag)::type>(c); });
  }
  return why;
}

const char* weight_backward(const Conv& c) {
  const char* why = refusal(c);
  if (why == nullptr) {
    visit_dtype<set_floating>("convolution_weight_backward", c.dtype, [&](auto tag) {
      weight_backward_typed<typename decltype(tag)::type>(c);
    });
  }
  return why;
}

}  // namespace

const BatchConvKernels batch_conv_kernels = {forward, weight_backward};

}  // namespace rushlight::cpu::RL_ISA
