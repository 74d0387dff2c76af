// The weight's gradient of convolutions of many small images, on interleaved images
// (conv/interleaved.h). A task sums over its images lane by lane, then over the lanes; tasks are
// added in order.
#include "cpu/isa/conv/interleaved.h"

namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int most_gradients = 4;  // in a tile of the weight's gradient
constexpr int most_taps = 5;
#else
constexpr int most_gradients = 3;
constexpr int most_taps = 3;
#endif

// Rows of the output's gradient and of the image under one row of taps.
template <class T>
struct GradientRows {
  const T* gradient;
  const T* image;  // of the first tap of the first pixel
  int64_t count;
  bool add;  // to what other rows gave
  int64_t gradient_row;
  int64_t image_row;
  int64_t gradient_pixel;
  int64_t image_pixel;
  int64_t gradient_channel;
  int64_t tap_step;
  int64_t width;
  int64_t inside[2];  // pixels all of whose taps are inside of the image
  int64_t column;     // of the first pixel's first tap
  int64_t stride;
  int64_t dilation;
  int64_t image_width;
};

// Sums over rows, lane by lane, of gradients of several channels times several taps.
template <class T, int channels, int taps>
void gradient_tile(const GradientRows<T>& rows, T* to, int64_t channel_step) {
  using V = Simd<T>;
  typename V::V acc[channels][taps];
#pragma GCC unroll 8
  for (int r = 0; r < channels; r++) {
#pragma GCC unroll 8
    for (int t = 0; t < taps; t++) {
      acc[r][t] = rows.add ? V::load(to + r * channel_step + t * V::width) : V::zero();
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
  for (int64_t h = 0; h < rows.count; h++) {
    const T* g = rows.gradient + h * rows.gradient_row;
    const T* x = rows.image + h * rows.image_row;
    const auto edge = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        add(g + i * rows.gradient_pixel, [&](int t) {
          const int64_t column = rows.column + i * rows.stride + t * rows.dilation;
          return column >= 0 && column < rows.image_width
                     ? x + i * rows.image_pixel + t * rows.tap_step
                     : zeros;
        });
      }
    };
    edge(0, rows.inside[0]);
    const T* pixel = x + rows.inside[0] * rows.image_pixel;
    const T* gradient = g + rows.inside[0] * rows.gradient_pixel;
    for (int64_t i = rows.inside[0]; i < rows.inside[1]; i++) {
      add(gradient, [&](int t) { return pixel + t * rows.tap_step; });
      pixel += rows.image_pixel;
      gradient += rows.gradient_pixel;
    }
    edge(rows.inside[1], rows.width);
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
struct Interior {
  int64_t begin;
  int64_t end;
};
Interior interior_of(const Conv& c, int d, int64_t k0, int64_t k1) {
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

// The gradient of one group's weight for interleaved images, in lanes: [output channel, input
// channel, tap]. A few rows at a time, so that the gradients of a tile stay in the first-level
// cache.
template <class T>
class GroupGradient {
 public:
  GroupGradient(const Conv& c, const T* image, const T* gradient, T* to)
      : c_(c), image_(image), gradient_(gradient), to_(to), in_(c.input), out_(c.output) {
    rows_.gradient_channel = out_.channel;
    rows_.width = c.out[2];
    rows_.stride = c.stride[2];
    rows_.dilation = c.dilation[2];
    rows_.image_width = c.in[2];
    rows_.tap_step = c.dilation[2] * in_.pixel[2];
    rows_.gradient_row = out_.pixel[1];
    rows_.image_row = c.stride[1] * in_.pixel[1];
    rows_.gradient_pixel = out_.pixel[2];
    rows_.image_pixel = c.stride[2] * in_.pixel[2];
    constexpr int64_t most = 16384 / sizeof(T) / Simd<T>::width / most_gradients;
    const int64_t together = std::max<int64_t>(1, most / c.out[2]);
    for (int64_t d = 0; d < c.out[0]; d++) {
      for (int64_t h = 0; h < c.out[1]; h += together) {
        rows_.add = d > 0 || h > 0;
        add_rows(d, h, std::min(h + together, c.out[1]));
      }
    }
  }

 private:
  // The input's coordinate under a tap.
  int64_t coordinate_under_tap(int d, int64_t i, int64_t tap) const {
    return i * c_.stride[d] + tap * c_.dilation[d] - c_.padding[d];
  }

  void add_rows(int64_t d, int64_t h0, int64_t h1) {
    const Blocks blocks(c_.out_channels, most_gradients);
    const int64_t row = c_.in_channels * c_.taps() * Simd<T>::width;
    for (int64_t b = 0; b < blocks.count; b++) {
      const int64_t o = blocks.begin(b);
      const int64_t channels = blocks.begin(b + 1) - o;
      for (int64_t i = 0; i < c_.in_channels; i++) {
        for (int64_t kd = 0; kd < c_.kernel[0]; kd++) {
          const Interior depth = interior_of(c_, 0, kd, kd + 1);
          for (int64_t kh = 0; kh < c_.kernel[1]; kh++) {
            const Interior height = interior_of(c_, 1, kh, kh + 1);
            const int64_t begin = std::max(h0, height.begin);
            const int64_t end = std::max(begin, std::min(h1, height.end));
            rows_.count = d >= depth.begin && d < depth.end ? end - begin : 0;
            rows_.gradient =
                gradient_ + o * out_.channel + d * out_.pixel[0] + begin * out_.pixel[1];
            const T* image = image_ + i * in_.channel +
                             coordinate_under_tap(0, d, kd) * in_.pixel[0] +
                             coordinate_under_tap(1, begin, kh) * in_.pixel[1];
            T* to = to_ + o * row +
                    (i * c_.taps() + (kd * c_.kernel[1] + kh) * c_.kernel[2]) * Simd<T>::width;
            add_row_of_taps(channels, image, to, row);
          }
        }
      }
    }
  }

  void add_row_of_taps(int64_t channels, const T* image, T* to, int64_t row) {
    static constexpr auto tiles =
        gradient_tiles<T>(std::make_index_sequence<most_gradients * most_taps>());
    if (rows_.add && rows_.count == 0) {
      return;
    }
    const Blocks blocks(c_.kernel[2], most_taps);
    for (int64_t b = 0; b < blocks.count; b++) {
      const int64_t k = blocks.begin(b);
      const int64_t taps = blocks.begin(b + 1) - k;
      const Interior width = interior_of(c_, 2, k, k + taps);
      rows_.inside[0] = width.begin;
      rows_.inside[1] = width.end;
      rows_.column = coordinate_under_tap(2, 0, k);
      rows_.image = image + rows_.column * in_.pixel[2];
      tiles[(channels - 1) * most_taps + taps - 1](rows_, to + k * Simd<T>::width, row);
    }
  }

  const Conv& c_;
  const T* image_;
  const T* gradient_;
  T* to_;
  const Steps<T> in_;
  const Steps<T> out_;
  GradientRows<T> rows_;
};

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
    interleave<S>(c.input, task * w, images, in, image.data());
    interleave<S>(c.output, task * w, images, out, gradient.data());
    for (int64_t g = 0; g < c.groups; g++) {
      GroupGradient<T>(c, image + g * c.in_channels * c.input.strides[1] * w,
                       gradient + g * c.out_channels * c.output.strides[1] * w, block.data());
      add_lanes<T>(block.data(), size, sums + (task * c.groups + g) * size);
    }
  });
  add_chunks(static_cast<S*>(c.weight), sums.data(), c.groups * size, tasks);
}

}  // namespace

const char* batch_weight_backward(const Conv& c) {
  if (c.out_channels > 16 && c.out_channels * c.in_channels * c.taps() > 4096) {
    return "many channels";
  }
  const char* why = interleaved_refusal(c, contains(set_reduced, c.dtype) ? 8192 : 65536);
  if (why == nullptr) {
    visit_dtype<set_floating>("convolution_weight_backward", c.dtype, [&](auto tag) {
      weight_backward_typed<typename decltype(tag)::type>(c);
    });
  }
  return why;
}

}  // namespace rushlight::cpu::RL_ISA
