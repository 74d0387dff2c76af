// Convolutions of small images with many channels as one matrix product for the whole batch: every
// pixel of the smaller image becomes a column of the elements under its window. The weight, which
// is the large operand here, is read where it lies.
//
// Between a large image (the input of an ordinary convolution) and a small one (its output) there
// are three products:  small = weight @ columns,  columns = weight' @ small (then added up to the
// large image: a transposed convolution, or the gradient of the input),  weight = small @ columns'.
#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "cpu/conv.h"
#include "cpu/gemm.h"
#include "cpu/scratch.h"

namespace rushlight::cpu {
namespace {

struct Shapes {
  const Conv& c;
  const Images& large = c.transposed ? c.output : c.input;
  const Images& small = c.transposed ? c.input : c.output;
  const int64_t large_channels = c.transposed ? c.out_channels : c.in_channels;
  const int64_t small_channels = c.transposed ? c.in_channels : c.out_channels;
  const Dims3& large_size = c.transposed ? c.out : c.in;
  const Dims3& small_size = c.transposed ? c.in : c.out;
  const int64_t small_area = small_size[0] * small_size[1] * small_size[2];
  const int64_t pixels = c.batch * small_area;
  const int64_t depth = large_channels * c.taps();

  // The small image is one, whose pixels lie at one stride: a matrix [channels, pixels].
  bool is_matrix() const {
    const auto& at = small.strides;
    return c.batch == 1 && (small_size[1] == 1 || at[3] == small_size[2] * at[4]) &&
           (small_size[0] == 1 || at[2] == small_size[1] * small_size[2] * at[4]);
  }
};

// Of the frame below: windows that reach over the padding do so at the end.
int64_t frame_size(const Shapes& s, int d) {
  const Conv& c = s.c;
  const int64_t reach = (s.small_size[d] - 1) * c.stride[d] + (c.kernel[d] - 1) * c.dilation[d] + 1;
  return std::max(c.padding[d] + s.large_size[d], reach);
}

// One channel of all large images with zeros around it, and where the pixels' windows lie in it.
struct Frame {
  Dims3 size;
  int64_t area;                 // of one image
  int64_t total;                // of all images
  std::vector<int32_t> starts;  // of the window of each row's first pixel
  std::vector<int32_t> taps;    // from a window's start

  explicit Frame(const Shapes& s) {
    const Conv& c = s.c;
    for (int d = 0; d < 3; d++) {
      size[d] = frame_size(s, d);
    }
    area = size[0] * size[1] * size[2];
    total = c.batch * area;
    const auto at = [&](int64_t z, int64_t y, int64_t x) {
      return static_cast<int32_t>((z * size[1] + y) * size[2] + x);
    };
    for (int64_t n = 0; n < c.batch; n++) {
      for (int64_t z = 0; z < s.small_size[0]; z++) {
        for (int64_t y = 0; y < s.small_size[1]; y++) {
          starts.push_back(static_cast<int32_t>(n * area) +
                           at(z * c.stride[0], y * c.stride[1], 0));
        }
      }
    }
    for (int64_t z = 0; z < c.kernel[0]; z++) {
      for (int64_t y = 0; y < c.kernel[1]; y++) {
        for (int64_t x = 0; x < c.kernel[2]; x++) {
          taps.push_back(at(z * c.dilation[0], y * c.dilation[1], x * c.dilation[2]));
        }
      }
    }
  }
};

// Calls f(offset in the frame, offset in the image, n) for the rows of all images of a channel.
template <class F>
void for_rows(const Shapes& s, const Frame& frame, int64_t channel, const F& f) {
  const auto& strides = s.large.strides;
  const Dims3& before = s.c.padding;
  for (int64_t n = 0; n < s.c.batch; n++) {
    for (int64_t z = 0; z < s.large_size[0]; z++) {
      for (int64_t y = 0; y < s.large_size[1]; y++) {
        f(n * frame.area + ((z + before[0]) * frame.size[1] + y + before[1]) * frame.size[2] +
              before[2],
          n * strides[0] + channel * strides[1] + z * strides[2] + y * strides[3], s.large_size[2]);
      }
    }
  }
}

// Calls f(a row's window at one tap, its pixels among the columns) for the rows of all small
// images, then for the next tap.
template <class T, class F>
void for_taps(const Shapes& s, const Frame& frame, T* plane, const F& f) {
  int64_t p = 0;
  for (const int32_t tap : frame.taps) {
    for (const int32_t start : frame.starts) {
      f(plane + tap + start, p);
      p += s.small_size[2];
    }
  }
}

int64_t channel_grain(const Shapes& s) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.pixels * s.c.taps()));
}

// [depth, pixels]
template <class T>
void gather_columns(const Shapes& s, const Frame& frame, T* columns) {
  const int64_t step = s.large.strides[4];
  parallel_for(0, s.large_channels, channel_grain(s), [&](int64_t begin, int64_t end) {
    const Scratch<T> plane(frame.total);
    std::fill_n(plane.data(), frame.total, T(0));
    for (int64_t channel = begin; channel < end; channel++) {
      for_rows(s, frame, channel, [&](int64_t to, int64_t from, int64_t n) {
        const T* row = static_cast<const T*>(s.large.data) + from;
        for (int64_t x = 0; x < n; x++) {
          plane[to + x] = row[x * step];
        }
      });
      T* to = columns + channel * s.c.taps() * s.pixels;
      for_taps(s, frame, plane.data(), [&](const T* window, int64_t p) {
        for (int64_t x = 0; x < s.small_size[2]; x++) {
          to[p + x] = window[x * s.c.stride[2]];
        }
      });
    }
  });
}

// The adjoint: adds columns up to the large image.
template <class T>
void add_columns(const Shapes& s, const Frame& frame, const T* columns, const T* bias) {
  const int64_t step = s.large.strides[4];
  parallel_for(0, s.large_channels, channel_grain(s), [&](int64_t begin, int64_t end) {
    const Scratch<T> plane(frame.total);
    for (int64_t channel = begin; channel < end; channel++) {
      std::fill_n(plane.data(), frame.total, bias != nullptr ? bias[channel] : T(0));
      const T* from = columns + channel * s.c.taps() * s.pixels;
      for_taps(s, frame, plane.data(), [&](T* window, int64_t p) {
        for (int64_t x = 0; x < s.small_size[2]; x++) {
          window[x * s.c.stride[2]] += from[p + x];
        }
      });
      for_rows(s, frame, channel, [&](int64_t at, int64_t to, int64_t n) {
        T* row = static_cast<T*>(s.large.data) + to;
        for (int64_t x = 0; x < n; x++) {
          row[x * step] = plane[at + x];
        }
      });
    }
  });
}

// Between the small images and a matrix [channels, pixels].
template <class T, bool to_image>
void move_small(const Shapes& s, T* matrix, const T* bias) {
  const auto& strides = s.small.strides;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.pixels));
  parallel_for(0, s.small_channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; channel++) {
      T* row = matrix + channel * s.pixels;
      const T shift = bias != nullptr ? bias[channel] : T(0);
      for (int64_t n = 0; n < s.c.batch; n++) {
        for (int64_t z = 0; z < s.small_size[0]; z++) {
          for (int64_t y = 0; y < s.small_size[1]; y++) {
            T* pixel = static_cast<T*>(s.small.data) + n * strides[0] + channel * strides[1] +
                       z * strides[2] + y * strides[3];
            for (int64_t x = 0; x < s.small_size[2]; x++) {
              if constexpr (to_image) {
                pixel[x * strides[4]] = row[x] + shift;
              } else {
                row[x] = pixel[x * strides[4]];
              }
            }
            row += s.small_size[2];
          }
        }
      }
    }
  });
}

template <class T>
void forward(const Shapes& s) {
  const Frame frame(s);
  const Scratch<T> columns(s.depth * s.pixels);
  const Matrices weight{s.c.weight, s.depth, 1};
  const auto* bias = static_cast<const T*>(s.c.bias);
  if (s.c.transposed) {
    const Scratch<T> small(s.small_channels * s.pixels);
    move_small<T, false>(s, small.data(), nullptr);
    gemm({.dtype = s.c.dtype,
          .m = s.depth,
          .n = s.pixels,
          .k = s.small_channels,
          .a = {weight.data, 1, s.depth},
          .b = {small.data(), s.pixels, 1},
          .c = {columns.data(), s.pixels, 1}});
    add_columns<T>(s, frame, columns.data(), bias);
    return;
  }
  gather_columns<T>(s, frame, columns.data());
  Gemm product{.dtype = s.c.dtype,
               .m = s.small_channels,
               .n = s.pixels,
               .k = s.depth,
               .a = weight,
               .b = {columns.data(), s.pixels, 1},
               .c = {}};
  if (s.is_matrix() && bias == nullptr) {
    product.c = {s.small.data, s.small.strides[1], s.small.strides[4]};
    gemm(product);
    return;
  }
  const Scratch<T> small(s.small_channels * s.pixels);
  product.c = {small.data(), s.pixels, 1};
  gemm(product);
  move_small<T, true>(s, small.data(), bias);
}

template <class T>
void weight_backward(const Shapes& s) {
  const Frame frame(s);
  const Scratch<T> columns(s.depth * s.pixels);
  const Scratch<T> small(s.small_channels * s.pixels);
  gather_columns<T>(s, frame, columns.data());
  move_small<T, false>(s, small.data(), nullptr);
  gemm({.dtype = s.c.dtype,
        .m = s.small_channels,
        .n = s.depth,
        .k = s.pixels,
        .a = {small.data(), s.pixels, 1},
        .b = {columns.data(), 1, s.pixels},
        .c = {s.c.weight, s.depth, 1}});
}

const char* refusal(const Shapes& s, bool few_pixels) {
  if (s.c.dtype != kFloat32 && s.c.dtype != kFloat64) {
    return "not float32 or float64";
  }
  if (s.c.groups != 1) {
    return "grouped";
  }
  if (s.c.taps() == 1 && !is_convolution_forced()) {
    return "1x1";
  }
  // Where a result of few channels is added up with strides, other ways compute each phase of the
  // strides by itself, with few taps.
  const bool phases = s.c.transposed && s.large_channels < 16 && s.c.stride != Dims3{1, 1, 1};
  // A column's element costs as much as some 30 multiplications, but windows of a few pixels cost
  // more for any number of channels.
  const int64_t least = phases ? 8 : !s.c.transposed && s.pixels <= 8 ? 1 : 128;
  if (s.small_channels < least && !is_convolution_forced()) {
    return "few channels";
  }
  constexpr int64_t largest = int64_t{1} << 22;
  if (!phases && !few_pixels && !is_convolution_forced()) {
    return "many pixels";
  }
  if (s.depth * s.pixels > largest) {
    return "large images";
  }
  int64_t elements = s.c.batch;
  for (int d = 0; d < 3; d++) {
    const int64_t n = frame_size(s, d);
    if (n > largest / elements) {
      return "wide padding or strides";
    }
    elements *= n;
  }
  return nullptr;
}

}  // namespace

const char* convolve_by_columns(const Conv& c) {
  const Shapes s{c};
  // Rows that are narrower than a vector are no loss where several images share it. Where the
  // weight is several times as large as the columns, a layout of its own would cost more than
  // these.
  const bool few_pixels = s.pixels <= 32 || (s.pixels <= 128 && (c.batch > 1 || c.transposed)) ||
                          (!c.transposed && 2 * s.pixels <= s.small_channels);
  const char* why = refusal(s, few_pixels);
  if (why == nullptr) {
    c.dtype == kFloat32 ? forward<float>(s) : forward<double>(s);
  }
  return why;
}

const char* convolve_weight_by_columns(const Conv& c) {
  const Shapes s{c};
  const char* why = refusal(s, s.pixels <= 64 || c.taps() > 128);
  if (why == nullptr) {
    c.dtype == kFloat32 ? weight_backward<float>(s) : weight_backward<double>(s);
  }
  return why;
}

}  // namespace rushlight::cpu
