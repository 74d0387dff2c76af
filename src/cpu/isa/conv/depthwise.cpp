// Convolutions of groups of one or few channels (depthwise ones). A channel's rows are copied into
// a frame with zeros around them, in which every tap of every output lies at one offset: all
// outputs of a part of the image are one run of vectors, however narrow its rows are, and the
// few numbers between the rows are thrown away. Strides split the frame, so that neighbouring
// outputs read neighbouring elements.
#include <span>
#include <vector>

#include "cpu/isa/conv/axes.h"
#include "cpu/isa/conv/rows.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using Axes = std::array<std::vector<ConvAxis>, 3>;

// Vectors of outputs computed together; what is read beyond a frame's end.
constexpr int most_vectors = 4;

// Outputs rows[0] to rows[1] of an axis.
struct Rows {
  int64_t begin;
  int64_t end;
  int64_t count() const { return std::max<int64_t>(0, end - begin); }
};

// The frames of a part of the output: rows r0 to r1 along the dimension `split`.
class Frames {
 public:
  struct Phase {
    std::array<const ConvAxis*, 3> axes;
    std::array<Rows, 3> rows;
    std::vector<int64_t> taps;     // indices into a channel's weight
    std::vector<int64_t> offsets;  // of the taps of the first output, channel by channel
    int64_t length;                // from the first output to the last
  };

  Frames(const Conv& c, const Axes& axes, int split, int64_t r0, int64_t r1) : c_(c) {
    for (int d = 0; d < 3; d++) {
      int64_t low = INT64_MAX;
      int64_t high = INT64_MIN;
      for (const ConvAxis& a : axes[d]) {
        const Rows rows = rows_of(a, d == split, r0, r1);
        for (const int64_t offset : a.offsets) {
          if (rows.count() > 0) {
            low = std::min(low, a.base + rows.begin * a.stride + offset);
            high = std::max(high, a.base + (rows.end - 1) * a.stride + offset);
          }
        }
      }
      steps_[d] = axes[d][0].stride;
      low_[d] = low == INT64_MAX ? 0 : low;
      size_[d] = low == INT64_MAX ? 1 : (high - low) / steps_[d] + 1;
      first_[d] = low_[d] - axes[d][0].low;
    }
    area_ = size_[0] * size_[1] * size_[2];
    channel_ = steps_[0] * steps_[1] * steps_[2] * area_;
    for (const ConvAxis& d : axes[0]) {
      for (const ConvAxis& h : axes[1]) {
        for (const ConvAxis& w : axes[2]) {
          add_phase({&d, &h, &w}, {rows_of(d, split == 0, r0, r1), rows_of(h, split == 1, r0, r1),
                                   rows_of(w, split == 2, r0, r1)});
        }
      }
    }
  }

  const std::vector<Phase>& phases() const { return phases_; }
  int64_t elements() const { return c_.in_channels * channel_; }
  // From row to row of the outputs, in the run.
  int64_t row_step(int d) const { return d == 0 ? size_[1] * size_[2] : size_[2]; }

  // A group's channels of image n into a frame that was zero at first, and may hold another image.
  template <class S, class T>
  void fill(int64_t n, int64_t group, T* to) const {
    const auto& s = c_.input.strides;
    // Rows and columns inside of the image, from the frame's first.
    const auto begin = [&](int d) { return std::max<int64_t>(0, -first_[d]); };
    const auto end = [&](int d) { return std::min(size_[d] * steps_[d], c_.in[d] - first_[d]); };
    for (int64_t i = 0; i < c_.in_channels; i++) {
      const S* image =
          static_cast<const S*>(c_.input.data) + n * s[0] + (group * c_.in_channels + i) * s[1];
      for (int64_t d = begin(0); d < end(0); d++) {
        for (int64_t h = begin(1); h < end(1); h++) {
          const int64_t part = (d % steps_[0] * steps_[1] + h % steps_[1]) * steps_[2];
          fill_row(image + (d + first_[0]) * s[2] + (h + first_[1]) * s[3], s[4],
                   to + i * channel_ + part * area_ +
                       (d / steps_[0] * size_[1] + h / steps_[1]) * size_[2]);
        }
      }
    }
  }

 private:
  static Rows rows_of(const ConvAxis& a, bool part, int64_t r0, int64_t r1) {
    return part ? Rows{r0, std::min(r1, a.count)} : Rows{0, a.count};
  }

  template <class S, class T>
  void fill_row(const S* from, int64_t stride, T* row) const {
    for (int64_t f = 0; f < steps_[2]; f++) {
      // Element j is column j * steps + shift of the image.
      const int64_t shift = f + first_[2];
      const int64_t begin =
          std::min(size_[2], shift >= 0 ? 0 : (-shift + steps_[2] - 1) / steps_[2]);
      const int64_t inside = shift >= c_.in[2] ? 0 : (c_.in[2] - 1 - shift) / steps_[2] + 1;
      const int64_t end = std::clamp(inside, begin, size_[2]);
      copy_row(row + f * area_ + begin, from + (begin * steps_[2] + shift) * stride,
               steps_[2] * stride, end - begin);
    }
  }

  void add_phase(const std::array<const ConvAxis*, 3>& axes, const std::array<Rows, 3>& rows) {
    Phase p{axes, rows, {}, {}, 1};
    for (int d = 0; d < 3; d++) {
      if (rows[d].count() == 0) {
        return;
      }
    }
    p.length += (rows[0].count() - 1) * row_step(0) + (rows[1].count() - 1) * row_step(1) +
                rows[2].count() - 1;
    const auto place = [&](int d, int64_t tap) {
      const ConvAxis& a = *axes[d];
      return a.base + rows[d].begin * a.stride + a.offsets[static_cast<size_t>(tap)] - low_[d];
    };
    const auto taps = [&](int d) { return static_cast<int64_t>(axes[d]->taps.size()); };
    const auto tap = [&](int d, int64_t t) { return axes[d]->taps[static_cast<size_t>(t)]; };
    for (int64_t i = 0; i < c_.in_channels; i++) {
      for (int64_t d = 0; d < taps(0); d++) {
        for (int64_t h = 0; h < taps(1); h++) {
          for (int64_t w = 0; w < taps(2); w++) {
            const Dims3 at = {place(0, d), place(1, h), place(2, w)};
            const int64_t part =
                (at[0] % steps_[0] * steps_[1] + at[1] % steps_[1]) * steps_[2] + at[2] % steps_[2];
            p.offsets.push_back(i * channel_ + part * area_ + at[0] / steps_[0] * row_step(0) +
                                at[1] / steps_[1] * row_step(1) + at[2] / steps_[2]);
            if (i == 0) {
              p.taps.push_back((tap(0, d) * c_.kernel[1] + tap(1, h)) * c_.kernel[2] + tap(2, w));
            }
          }
        }
      }
    }
    phases_.push_back(std::move(p));
  }

  const Conv& c_;
  Dims3 steps_;   // from output to output
  Dims3 low_;     // slab coordinates (ConvAxis) where the frame begins
  Dims3 first_;   // the input's coordinates there
  Dims3 size_;    // of what one phase of the strides reads
  int64_t area_;  // of that
  int64_t channel_;
  std::vector<Phase> phases_;
};

// Calls f(offset among a run's outputs, offset in an image of the output) for a phase's rows.
template <class F>
void for_rows(const Frames& frames, const Frames::Phase& p, const Images& image, const F& f) {
  const auto place = [&](int d, int64_t i) {
    return (p.axes[d]->first + i * p.axes[d]->step) * image.strides[2 + d];
  };
  for (int64_t d = 0; d < p.rows[0].count(); d++) {
    for (int64_t h = 0; h < p.rows[1].count(); h++) {
      f(d * frames.row_step(0) + h * frames.row_step(1),
        place(0, p.rows[0].begin + d) + place(1, p.rows[1].begin + h) + place(2, p.rows[2].begin));
    }
  }
}

// How the output is cut into parts whose frames stay in the first-level cache. A single row is cut
// into few enough that what each knows of the taps takes little memory.
struct Cut {
  static constexpr int64_t most_of_row = 256;

  int split;
  int64_t rows;  // of a part
  int64_t parts;

  Cut(const Conv& c, const Axes& axes) {
    const auto count = [&](int d) {
      int64_t n = 1;
      for (const ConvAxis& a : axes[d]) {
        n = std::max(n, a.count);
      }
      return n;
    };
    split = count(0) > 1 ? 0 : count(1) > 1 ? 1 : 2;
    int64_t row = c.in_channels * axes[split][0].stride;
    for (int d = split + 1; d < 3; d++) {
      row *= axes[d][0].size;
    }
    const int64_t least = split == 2 ? (count(2) + most_of_row - 1) / most_of_row : 1;
    rows = std::max(least, 8192 / std::max<int64_t>(1, row));
    rows = std::clamp<int64_t>(rows, 1, count(split));
    parts = (count(split) + rows - 1) / rows;
  }
};

template <class T, int vectors>
void output_tile(const T* frame, const std::vector<int64_t>& offsets, const T* weight, T bias,
                 T* to) {
  using V = Simd<T>;
  typename V::V acc[vectors];
  for (auto& v : acc) {
    v = V::set1(bias);
  }
  for (size_t k = 0; k < offsets.size(); k++) {
    const typename V::V factor = V::set1(weight[k]);
    const T* from = frame + offsets[k];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      acc[v] = V::fma(factor, V::load(from + v * V::width), acc[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    V::store(to + v * V::width, acc[v]);
  }
}

template <class T>
void output_run(const T* frame, const Frames::Phase& p, const T* weight, T bias, T* to) {
  static_assert(most_vectors == 4);
  constexpr int64_t w = Simd<T>::width;
  int64_t i = 0;
  for (; i + 3 * w < p.length; i += 4 * w) {
    output_tile<T, 4>(frame + i, p.offsets, weight, bias, to + i);
  }
  if (i + 2 * w < p.length) {
    output_tile<T, 3>(frame + i, p.offsets, weight, bias, to + i);
  } else if (i + w < p.length) {
    output_tile<T, 2>(frame + i, p.offsets, weight, bias, to + i);
  } else if (i < p.length) {
    output_tile<T, 1>(frame + i, p.offsets, weight, bias, to + i);
  }
}

template <class S>
void forward_typed(const Conv& c) {
  using T = compute_t<S>;
  constexpr int64_t spare = most_vectors * Simd<T>::width;
  const Axes axes = {axes_of(c, 0), axes_of(c, 1), axes_of(c, 2)};
  const Cut cut(c, axes);
  const int64_t volume = c.taps();
  const auto& s = c.output.strides;
  std::vector<Frames> frames;
  for (int64_t part = 0; part < cut.parts; part++) {
    frames.emplace_back(c, axes, cut.split, part * cut.rows, (part + 1) * cut.rows);
  }
  const int64_t work = c.pixels() / cut.parts * c.out_channels * c.in_channels * volume;
  const int64_t grain = std::max<int64_t>(1, 65536 / (work + 1024));
  parallel_for(0, c.groups * c.batch * cut.parts, grain, [&](int64_t begin, int64_t end) {
    int64_t elements = 0;
    int64_t length = 0;
    for (const Frames& f : frames) {
      elements = std::max(elements, f.elements());
      for (const Frames::Phase& p : f.phases()) {
        length = std::max(length, p.length);
      }
    }
    const Scratch<T> frame(elements + spare);
    const int64_t planes = c.groups * c.batch;
    int64_t filled = -1;  // the part whose frame it is
    const Scratch<T> run(length + spare);
    const Scratch<T> weight(c.in_channels * volume);
    for (int64_t t = begin; t < end; t++) {
      const Frames& f = frames[static_cast<size_t>(t / planes)];
      const int64_t n = t % c.batch;
      const int64_t g = t % planes / c.batch;
      if (filled != t / planes) {
        std::fill_n(frame.data(), elements + spare, T(0));
        filled = t / planes;
      }
      f.fill<S>(n, g, frame.data());
      for (const Frames::Phase& p : f.phases()) {
        for (int64_t o = 0; o < c.out_channels; o++) {
          int64_t k = 0;
          for (int64_t i = 0; i < c.in_channels; i++) {
            const int64_t row = c.transposed ? (g * c.in_channels + i) * c.out_channels + o
                                             : (g * c.out_channels + o) * c.in_channels + i;
            const S* from = static_cast<const S*>(c.weight) + row * volume;
            for (const int64_t tap : p.taps) {
              weight[k++] = static_cast<T>(from[tap]);
            }
          }
          const int64_t channel = g * c.out_channels + o;
          const T bias =
              c.bias == nullptr ? T(0) : static_cast<T>(static_cast<const S*>(c.bias)[channel]);
          output_run<T>(frame, p, weight, bias, run);
          S* image = static_cast<S*>(c.output.data) + n * s[0] + channel * s[1];
          for_rows(f, p, c.output, [&](int64_t at, int64_t to) {
            put_row(image + to, p.axes[2]->step * s[4], run + at, p.rows[2].count());
          });
        }
      }
    }
  });
}

// Sums, lane by lane, of the products of `length` gradients and the elements under each tap.
template <class T, int taps>
void weight_tile(const T* gradient, const T* frame, const int64_t* offsets, int64_t length,
                 T* sums) {
  using V = Simd<T>;
  typename V::V acc[taps];
#pragma GCC unroll 8
  for (int k = 0; k < taps; k++) {
    acc[k] = V::load(sums + k * V::width);
  }
  for_vectors<T>(length, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
    const typename V::V g = load_some(gradient + i, lanes);
#pragma GCC unroll 8
    for (int k = 0; k < taps; k++) {
      acc[k] = V::fma(g, load_some(frame + offsets[k] + i, lanes), acc[k]);
    }
  });
#pragma GCC unroll 8
  for (int k = 0; k < taps; k++) {
    V::store(sums + k * V::width, acc[k]);
  }
}

template <class T>
void weight_run(const T* gradient, const T* frame, const std::vector<int64_t>& offsets,
                int64_t from, int64_t length, T* sums) {
  constexpr int64_t w = Simd<T>::width;
  const auto n = static_cast<int64_t>(offsets.size());
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    weight_tile<T, 8>(gradient + from, frame + from, offsets.data() + k, length, sums + k * w);
  }
  if (k + 4 <= n) {
    weight_tile<T, 4>(gradient + from, frame + from, offsets.data() + k, length, sums + k * w);
    k += 4;
  }
  for (; k < n; k++) {
    weight_tile<T, 1>(gradient + from, frame + from, offsets.data() + k, length, sums + k * w);
  }
}

// The gradient of one group's weight for some images and the parts of these frames, [output
// channel, input channel, tap]. Between the rows of a run gradients are 0, which an infinite
// element of the image turns into NaN: `by_rows` leaves these places out.
template <class S, class T>
void group_gradient(const Conv& c, std::span<const Frames> frames, int64_t group, int64_t n0,
                    int64_t n1, bool by_rows, T* to) {
  constexpr int64_t w = Simd<T>::width;
  const int64_t depth = c.in_channels * c.taps();
  const auto& s = c.output.strides;
  const Scratch<T> sums(c.out_channels * depth * w);
  std::fill_n(sums.data(), c.out_channels * depth * w, T(0));
  for (const Frames& f : frames) {
    const Frames::Phase& p = f.phases()[0];
    const Scratch<T> frame(f.elements() + w);
    std::fill_n(frame.data(), f.elements() + w, T(0));
    const Scratch<T> gradient(p.length);
    std::fill_n(gradient.data(), p.length, T(0));
    for (int64_t n = n0; n < n1; n++) {
      f.fill<S>(n, group, frame.data());
      for (int64_t o = 0; o < c.out_channels; o++) {
        const S* image =
            static_cast<const S*>(c.output.data) + n * s[0] + (group * c.out_channels + o) * s[1];
        for_rows(f, p, c.output, [&](int64_t at, int64_t from) {
          copy_row(gradient + at, image + from, s[4], p.rows[2].count());
        });
        T* mine = sums + o * depth * w;
        if (by_rows) {
          for_rows(f, p, c.output, [&](int64_t at, int64_t) {
            weight_run<T>(gradient, frame, p.offsets, at, p.rows[2].count(), mine);
          });
        } else {
          weight_run<T>(gradient, frame, p.offsets, 0, p.length, mine);
        }
      }
    }
  }
  for (int64_t k = 0; k < c.out_channels * depth; k++) {
    to[k] = sum_lanes<T>(Simd<T>::load(sums + k * w));
  }
}

template <class S>
void weight_backward_typed(const Conv& c) {
  using T = compute_t<S>;
  const Axes axes = {axes_of(c, 0), axes_of(c, 1), axes_of(c, 2)};
  const Cut cut(c, axes);
  std::vector<Frames> frames;
  for (int64_t part = 0; part < cut.parts; part++) {
    frames.emplace_back(c, axes, cut.split, part * cut.rows, (part + 1) * cut.rows);
  }
  const int64_t size = c.out_channels * c.in_channels * c.taps();
  const int64_t work = c.pixels() * size;  // of a group of an image
  const int64_t images = std::clamp<int64_t>((int64_t{1} << 18) / (work + 1), 1, c.batch);
  const int64_t shares = cut.split == 2 ? cut.parts : 1;  // a long row is shared out
  const std::span<const Frames> all(frames);
  const int64_t chunks = (c.batch + images - 1) / images * shares;
  const Scratch<T> sums(chunks * c.groups * size);
  const int64_t grain = std::max<int64_t>(1, 65536 / (work * images / shares + 1024));
  parallel_for(0, chunks * c.groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      const int64_t n = t / c.groups / shares * images;
      const int64_t stop = std::min(n + images, c.batch);
      const auto share = static_cast<size_t>(t / c.groups % shares);
      const std::span<const Frames> mine = shares == 1 ? all : all.subspan(share, 1);
      T* to = sums + t * size;
      group_gradient<S, T>(c, mine, t % c.groups, n, stop, false, to);
      if (!std::all_of(to, to + size, [](T x) { return std::isfinite(x); })) {
        group_gradient<S, T>(c, mine, t % c.groups, n, stop, true, to);
      }
    }
  });
  add_chunks(static_cast<S*>(c.weight), sums.data(), c.groups * size, chunks);
}

const char* refusal(const Conv& c, int64_t most) {
  if (c.in_channels * c.out_channels > most && !is_convolution_forced()) {
    return "many channels in a group";
  }
  double frame = 1;
  double images = 0;
  for (const Dims3* size : {&c.in, &c.out}) {
    images += static_cast<double>((*size)[0] * (*size)[1] * (*size)[2]);
  }
  for (int d = 0; d < 3; d++) {
    frame *= static_cast<double>(c.dilation[d]) * static_cast<double>(c.kernel[d] - 1) +
             static_cast<double>(c.transposed ? 1 : c.stride[d]) *
                 static_cast<double>(c.transposed ? c.in[d] : c.out[d]);
  }
  return frame > 8 * images + 4096 ? "the taps lie far apart" : nullptr;
}

const char* forward(const Conv& c) {
  const char* why = refusal(c, 4);
  if (why == nullptr) {
    visit_dtype<set_floating>("convolution", c.dtype,
                              [&](auto tag) { forward_typed<typename decltype(tag)::type>(c); });
  }
  return why;
}

const char* weight_backward(const Conv& c) {
  const char* why = refusal(c, 16);
  if (why == nullptr) {
    visit_dtype<set_floating>("convolution_weight_backward", c.dtype, [&](auto tag) {
      weight_backward_typed<typename decltype(tag)::type>(c);
    });
  }
  return why;
}

}  // namespace

const DepthwiseConvKernels depthwise_conv_kernels = {forward, weight_backward};

}  // namespace rushlight::cpu::RL_ISA
