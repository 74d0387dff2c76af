// Convolutions of many small images with few channels, on interleaved images (conv/interleaved.h):
// no lane is idle however narrow the rows are, no load straddles two lines of the cache, and taps
// outside of the image are left out. A task interleaves its images, computes all of their outputs,
// and separates those back.
#include <memory>
#include <vector>

#include "cpu/isa/conv/interleaved.h"

namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int most_channels = 6;  // in a tile of results: 24 of 32 registers
constexpr int most_pixels = 4;
#else
constexpr int most_channels = 6;  // 12 of 16 registers
constexpr int most_pixels = 2;
#endif

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

// One phase of a convolution for interleaved images.
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
        const int64_t y = coordinate(0, d) * out.pixel[0] + coordinate(1, h) * out.pixel[1];
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
                      coordinate(2, run.x) * out.pixel[2],
                  out.channel, width.step * out.pixel[2]);
            }
          }
        }
      }
    }
  }

 private:
  // The output's coordinate of output i, and the input's of one of its taps.
  int64_t coordinate(int d, int64_t i) const { return axes_[d]->first + i * axes_[d]->step; }
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
    interleave<S>(c.input, task * w, images, in, input.data());
    for (const Phase<S, T>& phase : phases) {
      phase.run(input, output);
    }
    deinterleave<S>(output.data(), c.output, task * w, images, out);
  });
}

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

const char* forward(const Conv& c) {
  // What a library takes, too, it does as fast unless interleaving costs little of the whole.
  const bool library = c.dtype != kFloat64 && (c.groups > 1 || c.out_channels >= 16);
  const bool long_sums = c.dtype == kFloat32 && c.in_channels * c.taps() >= 64;
  const char* why = interleaved_refusal(c, library && !long_sums ? 8192 : 65536);
  if (why == nullptr) {
    visit_dtype<set_floating>("convolution", c.dtype,
                              [&](auto tag) { forward_typed<typename decltype(tag)::type>(c); });
  }
  return why;
}

}  // namespace

const char* interleaved_refusal(const Conv& c, int64_t most) {
  const int64_t lanes = c.dtype == kFloat64 ? Simd<double>::width : Simd<float>::width;
  const int64_t tasks = (c.batch + lanes - 1) / lanes;
  if (!is_convolution_forced() && (tasks < 2 || c.batch * 4 < tasks * lanes * 3)) {
    return "few images";
  }
  const int64_t in = c.groups * c.in_channels;
  const int64_t out = c.groups * c.out_channels;
  if (!is_convolution_forced() && (in * area(c.in) + out * area(c.out) > most)) {
    return "large images";
  }
  if (!is_convolution_forced() && (c.in_channels * out * c.taps() > 16384)) {
    return "many channels";
  }
  // Libraries multiply 16-bit floats in half the time, where they are at their best.
  if (!is_convolution_forced() && (contains(set_reduced, c.dtype) && c.out_channels > 16)) {
    return "many channels of 16-bit floats";
  }
  if (!is_dense(c.input, in, c.in) || !is_dense(c.output, out, c.out)) {
    return "images with gaps";
  }
  return nullptr;
}

const BatchConvKernels batch_conv_kernels = {forward, batch_weight_backward};

}  // namespace rushlight::cpu::RL_ISA
