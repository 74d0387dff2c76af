// The list of ways to convolve (cpu/conv.h), the naive reference, and the ops of ops/conv.py on the
// CPU.
#include "cpu/conv.h"

#include <algorithm>
#include <atomic>
#include <string_view>

#include "core/parallel.h"
#include "cpu/candidates.h"
#include "cpu/gemm.h"
#include "cpu/kept_weights.h"
#include "cpu/onednn.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu {
namespace {

// ---- the reference ----

// Calls f(weight index, input offset, output offset) for every product of one image and group,
// offsets in elements.
template <class F>
void for_products(const Conv& c, int64_t n, int64_t g, const F& f) {
  const auto& x = c.input.strides;
  const auto& y = c.output.strides;
  // A transposed convolution has the products of the ordinary one with small and large image
  // exchanged.
  const Dims3& small = c.transposed ? c.in : c.out;
  const Dims3& large = c.transposed ? c.out : c.in;
  for (int64_t o = 0; o < c.out_channels; o++) {
    for (int64_t i = 0; i < c.in_channels; i++) {
      const int64_t row = c.transposed ? (g * c.in_channels + i) * c.out_channels + o
                                       : (g * c.out_channels + o) * c.in_channels + i;
      for (int64_t tap = 0; tap < c.taps(); tap++) {
        const Dims3 k = {tap / (c.kernel[1] * c.kernel[2]), tap / c.kernel[2] % c.kernel[1],
                         tap % c.kernel[2]};
        for (int64_t p = 0; p < small[0] * small[1] * small[2]; p++) {
          const Dims3 s = {p / (small[1] * small[2]), p / small[2] % small[1], p % small[2]};
          Dims3 l;
          bool inside = true;
          for (int d = 0; d < 3; d++) {
            l[d] = s[d] * c.stride[d] - c.padding[d] + k[d] * c.dilation[d];
            inside &= l[d] >= 0 && l[d] < large[d];
          }
          if (inside) {
            const Dims3& in = c.transposed ? s : l;
            const Dims3& out = c.transposed ? l : s;
            f(row * c.taps() + tap,
              n * x[0] + (g * c.in_channels + i) * x[1] + in[0] * x[2] + in[1] * x[3] +
                  in[2] * x[4],
              n * y[0] + (g * c.out_channels + o) * y[1] + out[0] * y[2] + out[1] * y[3] +
                  out[2] * y[4]);
          }
        }
      }
    }
  }
}

// Sums of 16-bit floats are not kept in a float here: the kernels proper take those.
template <class T>
void reference_forward(const Conv& c) {
  T* y = static_cast<T*>(c.output.data);
  const T* x = static_cast<const T*>(c.input.data);
  const T* w = static_cast<const T*>(c.weight);
  const T* bias = static_cast<const T*>(c.bias);
  const auto& s = c.output.strides;
  parallel_for(0, c.batch * c.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      const int64_t n = t / c.groups;
      const int64_t g = t % c.groups;
      for (int64_t o = g * c.out_channels; o < (g + 1) * c.out_channels; o++) {
        for (int64_t p = 0; p < c.pixels(); p++) {
          y[n * s[0] + o * s[1] + p / (c.out[1] * c.out[2]) * s[2] +
            p / c.out[2] % c.out[1] * s[3] + p % c.out[2] * s[4]] =
              bias != nullptr ? bias[o] : T(0);
        }
      }
      for_products(c, n, g, [&](int64_t k, int64_t in, int64_t out) {
        y[out] = math::add(y[out], math::mul(w[k], x[in]));
      });
    }
  });
}

template <class T>
void reference_weight_backward(const Conv& c) {
  const T* y = static_cast<const T*>(c.output.data);
  const T* x = static_cast<const T*>(c.input.data);
  T* w = static_cast<T*>(c.weight);
  std::fill_n(w, c.groups * c.out_channels * c.in_channels * c.taps(), T(0));
  parallel_for(0, c.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; g++) {
      for (int64_t n = 0; n < c.batch; n++) {
        for_products(c, n, g, [&](int64_t k, int64_t in, int64_t out) {
          w[k] = math::add(w[k], math::mul(y[out], x[in]));
        });
      }
    }
  });
}

const char* run_reference(const Conv& c) {
  visit_dtype<set_numbers>("convolution", c.dtype,
                           [&](auto tag) { reference_forward<typename decltype(tag)::type>(c); });
  return nullptr;
}

const char* run_reference_weight(const Conv& c) {
  visit_dtype<set_numbers>("convolution_weight_backward", c.dtype, [&](auto tag) {
    reference_weight_backward<typename decltype(tag)::type>(c);
  });
  return nullptr;
}

// ---- as a plain matrix product ----

// Kernels of one element at stride 1: pixels do not meet. An output may be padded beyond the input.
bool is_pointwise(const Conv& c) {
  for (int d = 0; d < 3; d++) {
    if (c.kernel[d] != 1 || c.stride[d] != 1 || c.padding[d] != 0 || c.in[d] != c.out[d]) {
      return false;
    }
  }
  return c.groups == 1;
}

// The pixels of an image lie at one stride.
bool is_flat(const Images& x, const Dims3& size) {
  const auto& s = x.strides;
  return (size[1] == 1 || s[3] == size[2] * s[4]) &&
         (size[0] == 1 || s[2] == size[1] * size[2] * s[4]);
}

const char* run_product(const Conv& c) {
  if (!is_pointwise(c)) {
    return "not 1x1 or grouped";
  }
  if (!is_flat(c.input, c.in) || !is_flat(c.output, c.out)) {
    return "strides";
  }
  // A product for each image reads the weight every time, and its last vectors are part empty:
  // oneDNN computes rows of several images at once.
  const int64_t lanes = (c.pixels() + 15) / 16 * 16;
  if (c.batch > 1 && 8 * (lanes - c.pixels()) > lanes && c.output.strides[1] != 1 &&
      onednn::convolve_refusal(c) == nullptr && !is_convolution_forced()) {
    return "small images";
  }
  const auto& x = c.input.strides;
  const auto& y = c.output.strides;
  const Matrices weight =
      c.transposed ? Matrices{c.weight, 1, c.out_channels} : Matrices{c.weight, c.in_channels, 1};
  Gemm g{.dtype = c.dtype,
         .batch = c.batch,
         .m = c.out_channels,
         .n = c.pixels(),
         .k = c.in_channels,
         .a = weight,
         .b = {c.input.data, x[1], x[4], x[0]},
         .c = {c.output.data, y[1], y[4], y[0]}};
  if (y[1] == 1) {  // channels last: all pixels of all images are rows
    g.m = c.pixels();
    g.n = c.out_channels;
    g.a = {c.input.data, x[4], x[1], x[0]};
    g.b = {c.weight, weight.col, weight.row};
    g.c = {c.output.data, y[4], y[1], y[0]};
    if (x[0] == g.m * x[4] && y[0] == g.m * y[4]) {
      g.m *= g.batch;
      g.batch = 1;
    }
    g.bias = {c.bias};
  } else {
    g.bias = {c.bias, 1, 0};
  }
  gemm(g);
  return nullptr;
}

// Images that are no one matrix: a product for each, added up in blocks of the weight; where these
// are few, in chunks of images, too.
const char* sum_of_products(const Conv& c) {
  if (c.dtype != kFloat32 && c.dtype != kFloat64) {
    return "images apart";
  }
  const int64_t pixels = c.pixels();
  if (pixels < 16 && !is_convolution_forced()) {
    return "small images";
  }
  constexpr int64_t least_work = 1'800'000;
  constexpr int64_t block = 64;
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t size = c.out_channels * c.in_channels;
  const int64_t wanted = std::clamp<int64_t>(c.batch * pixels * size / least_work, 1, 33);
  const int64_t rows = ceil_div(c.out_channels, std::min(wanted, ceil_div(c.out_channels, block)));
  const int64_t row_blocks = ceil_div(c.out_channels, rows);
  const int64_t columns = ceil_div(
      c.in_channels, std::min(ceil_div(wanted, row_blocks), ceil_div(c.in_channels, block)));
  const int64_t blocks = row_blocks * ceil_div(c.in_channels, columns);
  const int64_t images = ceil_div(c.batch, std::min(c.batch, ceil_div(wanted, blocks)));
  const int64_t chunks = ceil_div(c.batch, images);
  visit_dtype<set_Float | set_Double>("convolution_weight_backward", c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* weight = static_cast<T*>(c.weight);
    const Scratch<T> sums(chunks > 1 ? chunks * size : 0);
    parallel_for(0, blocks * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; t++) {
        const int64_t o = t % row_blocks * rows;
        const int64_t i = t % blocks / row_blocks * columns;
        const int64_t chunk = t / blocks;
        T* to = (chunks > 1 ? sums + chunk * size : weight) + o * c.in_channels + i;
        for (int64_t n = chunk * images; n < std::min((chunk + 1) * images, c.batch); n++) {
          const auto& x = c.input.strides;
          const auto& y = c.output.strides;
          gemm({.dtype = c.dtype,
                .m = std::min(rows, c.out_channels - o),
                .n = std::min(columns, c.in_channels - i),
                .k = pixels,
                .a = {static_cast<T*>(c.output.data) + n * y[0] + o * y[1], y[1], y[4]},
                .b = {static_cast<T*>(c.input.data) + n * x[0] + i * x[1], x[4], x[1]},
                .c = {to, c.in_channels, 1},
                .beta = n == chunk * images ? 0 : 1});
        }
      }
    });
    if (chunks > 1) {
      parallel_for(0, size, 32768, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          T sum = sums[i];
          for (int64_t k = 1; k < chunks; k++) {
            sum += sums[k * size + i];
          }
          weight[i] = sum;
        }
      });
    }
  });
  return nullptr;
}

const char* run_product_weight(const Conv& c) {
  if (!is_pointwise(c)) {
    return "not 1x1 or grouped";
  }
  const auto& x = c.input.strides;
  const auto& y = c.output.strides;
  const int64_t pixels = c.pixels();
  if (!is_flat(c.input, c.in) || !is_flat(c.output, c.out)) {
    return "strides";
  }
  if (c.batch > 1 && (x[0] != pixels * x[4] || y[0] != pixels * y[4])) {
    return sum_of_products(c);
  }
  gemm({.dtype = c.dtype,
        .m = c.out_channels,
        .n = c.in_channels,
        .k = c.batch * pixels,
        .a = {c.output.data, y[1], y[4]},
        .b = {c.input.data, x[4], x[1]},
        .c = {c.weight, c.in_channels, 1}});
  return nullptr;
}

// ---- as a matrix product of the pixels at the strides ----

// Calls f(the first pixel of a row in the images, its place in matrices) for the pixels that the
// strides meet of the images before a kernel of one element; the matrices are
// [batch, channels, pixels].
template <class T, class F>
void for_strided_rows(const Images& images, const Dims3& size, const Dims3& step, int64_t channels,
                      int64_t plane, T* matrix, const F& f) {
  const auto& s = images.strides;
  T* const image = static_cast<T*>(images.data) + plane / channels * s[0] + plane % channels * s[1];
  for (int64_t z = 0; z < size[0]; z++) {
    for (int64_t y = 0; y < size[1]; y++) {
      f(image + z * step[0] * s[2] + y * step[1] * s[3], matrix);
      matrix += size[2];
    }
  }
}

void pick_pixels(const Conv& c, void* matrices) {
  const int64_t area = c.pixels();
  const int64_t step = c.stride[2] * c.input.strides[4];
  visit_dtype<set_all>("convolution", c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, c.batch * c.in_channels, std::max<int64_t>(1, 32768 / area),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t t = begin; t < end; t++) {
                     for_strided_rows(c.input, c.out, c.stride, c.in_channels, t,
                                      static_cast<T*>(matrices) + t * area,
                                      [&](const T* row, T* to) {
                                        for (int64_t x = 0; x < c.out[2]; x++) {
                                          to[x] = row[x * step];
                                        }
                                      });
                   }
                 });
  });
}

// The adjoint: zeros between the pixels.
void insert_zeros(const Conv& c, void* matrices) {
  const int64_t area = c.in[0] * c.in[1] * c.in[2];
  const auto& s = c.output.strides;
  const int64_t step = c.stride[2] * s[4];
  visit_dtype<set_all>("convolution", c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, c.batch * c.out_channels, std::max<int64_t>(1, 32768 / c.pixels()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t t = begin; t < end; t++) {
                     const Dims3 every = {1, 1, 1};
                     for_strided_rows<T>(c.output, c.out, every, c.out_channels, t, nullptr,
                                         [&](T* row, T*) {
                                           for (int64_t x = 0; x < c.out[2]; x++) {
                                             row[x * s[4]] = T(0);
                                           }
                                         });
                     for_strided_rows(c.output, c.in, c.stride, c.out_channels, t,
                                      static_cast<T*>(matrices) + t * area,
                                      [&](T* row, const T* from) {
                                        for (int64_t x = 0; x < c.in[2]; x++) {
                                          row[x * step] = from[x];
                                        }
                                      });
                   }
                 });
  });
}

// The same problem at stride 1, with a matrix for each of the images before the strides.
Conv without_strides(const Conv& c, void* matrices) {
  Conv plain = c;
  Images& images = c.transposed ? plain.output : plain.input;
  const Dims3& size = c.transposed ? c.in : c.out;
  const int64_t channels = c.transposed ? c.out_channels : c.in_channels;
  const int64_t area = size[0] * size[1] * size[2];
  images = {matrices, {channels * area, area, size[1] * size[2], size[2], 1}};
  plain.in = plain.out = size;
  plain.stride = {1, 1, 1};
  return plain;
}

const char* picks_pixels(const Conv& c) {
  for (int d = 0; d < 3; d++) {
    if (c.kernel[d] != 1 || c.padding[d] != 0) {
      return "not 1x1 or padded";
    }
  }
  if (c.groups != 1 || c.stride == Dims3{1, 1, 1}) {
    return "grouped or without strides";
  }
  return c.transposed && c.bias != nullptr ? "transposed with a bias" : nullptr;
}

const char* run_on_picked_pixels(const Conv& c) {
  const char* refusal = picks_pixels(c);
  if (refusal != nullptr) {
    return refusal;
  }
  const int64_t pixels =
      c.transposed ? c.out_channels * c.in[0] * c.in[1] * c.in[2] : c.in_channels * c.pixels();
  const Scratch<char> matrices(c.batch * pixels * itemsize(c.dtype));
  const Conv plain = without_strides(c, matrices.data());
  if (!c.transposed) {
    pick_pixels(c, matrices.data());
    return run_product(plain);
  }
  refusal = run_product(plain);
  if (refusal == nullptr) {
    insert_zeros(c, matrices.data());
  }
  return refusal;
}

const char* run_weight_on_picked_pixels(const Conv& c) {
  const char* refusal = picks_pixels(c);
  if (refusal != nullptr) {
    return refusal;
  }
  const Scratch<char> matrices(c.batch * c.in_channels * c.pixels() * itemsize(c.dtype));
  pick_pixels(c, matrices.data());
  return run_product_weight(without_strides(c, matrices.data()));
}

// One window, which is the whole image: an image is a row of the product.
bool is_single_window(const Conv& c) {
  const Images& large = c.transposed ? c.output : c.input;
  const int64_t channels = c.transposed ? c.out_channels : c.in_channels;
  const Dims3& size = c.transposed ? c.out : c.in;
  int64_t step = 1;
  for (int d = 2; d >= 0; d--) {
    if (c.kernel[d] != size[d] || c.padding[d] != 0 || (c.dilation[d] != 1 && c.kernel[d] > 1) ||
        (size[d] > 1 && large.strides[2 + d] != step)) {
      return false;
    }
    step *= size[d];
  }
  return c.groups == 1 && (channels == 1 || large.strides[1] == step);
}

const char* run_single_window(const Conv& c) {
  if (!is_single_window(c)) {
    return "more than one window";
  }
  if (c.transposed && c.bias != nullptr) {
    return "transposed with a bias";
  }
  const auto& x = c.input.strides;
  const auto& y = c.output.strides;
  if (c.transposed) {
    const int64_t n = c.out_channels * c.taps();
    gemm({.dtype = c.dtype,
          .m = c.batch,
          .n = n,
          .k = c.in_channels,
          .a = {c.input.data, x[0], x[1]},
          .b = {c.weight, n, 1},
          .c = {c.output.data, y[0], 1}});
    return nullptr;
  }
  if (c.out_channels > 1 && y[1] != 1) {
    return "strides";
  }
  const int64_t k = c.in_channels * c.taps();
  gemm({.dtype = c.dtype,
        .m = c.batch,
        .n = c.out_channels,
        .k = k,
        .a = {c.input.data, x[0], 1},
        .b = {c.weight, 1, k},
        .c = {c.output.data, y[0], y[1]},
        .bias = {c.bias}});
  return nullptr;
}

const char* run_weight_single_window(const Conv& c) {
  if (!is_single_window(c)) {
    return "more than one window";
  }
  const int64_t n = c.in_channels * c.taps();
  gemm({.dtype = c.dtype,
        .m = c.out_channels,
        .n = n,
        .k = c.batch,
        .a = {c.output.data, c.output.strides[1], c.output.strides[0]},
        .b = {c.input.data, c.input.strides[0], 1},
        .c = {c.weight, n, 1}});
  return nullptr;
}

// ---- the library, and windows ----

const char* run_onednn(const Conv& c) {
  const char* refusal = onednn::convolve_refusal(c);
  if (refusal == nullptr) {
    onednn::convolve(c);
  }
  return refusal;
}

const char* run_onednn_weight(const Conv& c) {
  const char* refusal = onednn::convolve_weight_backward_refusal(c);
  if (refusal == nullptr) {
    onednn::convolve_weight_backward(c);
  }
  return refusal;
}

// Not a real floating dtype: only the reference takes it.
const char* refuse_not_floating(const Conv& c) {
  return contains(set_floating, c.dtype) ? nullptr : "not a real floating dtype";
}

const char* run_batch(const Conv& c) {
  const char* refusal = refuse_not_floating(c);
  return refusal != nullptr ? refusal : batch_conv_kernels().forward(c);
}

const char* run_batch_weight(const Conv& c) {
  const char* refusal = refuse_not_floating(c);
  return refusal != nullptr ? refusal : batch_conv_kernels().weight_backward(c);
}

const char* run_depthwise(const Conv& c) {
  const char* refusal = refuse_not_floating(c);
  return refusal != nullptr ? refusal : depthwise_conv_kernels().forward(c);
}

const char* run_depthwise_weight(const Conv& c) {
  const char* refusal = refuse_not_floating(c);
  return refusal != nullptr ? refusal : depthwise_conv_kernels().weight_backward(c);
}

const char* run_winograd(const Conv& c) { return winograd_conv_kernels().forward(c); }

// Window kernels copy all that lies between the taps; of a huge dilation that is far more than the
// image.
const char* not_for_windows(const Conv& c) {
  double span = 1;
  for (int d = 0; d < 3; d++) {
    span *= static_cast<double>(c.dilation[d]) * static_cast<double>(c.kernel[d] - 1) +
            static_cast<double>(c.stride[d]) * static_cast<double>(std::max(c.in[d], c.out[d]));
  }
  return span > 0x1p36 ? "the windows span too much" : refuse_not_floating(c);
}

const char* run_windows(const Conv& c) {
  const char* refusal = not_for_windows(c);
  if (refusal == nullptr) {
    conv_kernels().forward(c);
  }
  return refusal;
}

const char* run_windows_weight(const Conv& c) {
  const char* refusal = not_for_windows(c);
  if (refusal == nullptr) {
    conv_kernels().weight_backward(c);
  }
  return refusal;
}

// ---- the list ----

// Best first, by measurements on common networks' shapes (docs/measurements.md has the table of how
// much each saves against the next best): what each is there for.
constexpr Candidate<Conv> forward_candidates[] = {
    {"matrix product", run_product},          // 1x1: the images are the matrix
    {"one window", run_single_window},        // a kernel as large as the image
    {"picked pixels", run_on_picked_pixels},  // 1x1 with strides: the product again
    {"Winograd", run_winograd},               // 3x3 at stride 1: a fourth of the multiplications
    {"columns", convolve_by_columns},         // few pixels, where the weight is most of the memory;
                                              // gradients of images with few channels and strides
    {"images side by side", run_batch},       // many small images of few channels: no lane is idle
    {"oneDNN", run_onednn},                   // the rest of float32 and 16-bit floats
    {"depthwise", run_depthwise},             // groups of a channel that it has no kernel for
    {"windows", run_windows},                 // few channels; float64
    {"reference", run_reference},             // integers and complex numbers
};

constexpr Candidate<Conv> weight_candidates[] = {
    {"matrix product", run_product_weight},
    {"one window", run_weight_single_window},
    {"picked pixels", run_weight_on_picked_pixels},
    {"columns", convolve_weight_by_columns},
    {"images side by side", run_batch_weight},
    {"oneDNN", run_onednn_weight},
    {"depthwise", run_depthwise_weight},
    {"windows", run_windows_weight},
    {"reference", run_reference_weight},
};

std::atomic<const char*> forced_way = nullptr;

template <size_t N>
void run(const Candidate<Conv> (&candidates)[N], const Conv& c) {
  const char* forced = forced_way.load(std::memory_order_relaxed);
  if (RL_LIKELY(forced == nullptr)) {
    run_first(candidates, c);
    return;
  }
  const char* refusal = "no such way";
  for (const Candidate<Conv>& candidate : candidates) {
    if (candidate.name == std::string_view(forced)) {
      refusal = candidate.run(c);
    }
  }
  if (refusal != nullptr) {
    throw NotImplementedError(str(c.describe(), " by ", forced, ": ", refusal));
  }
}

}  // namespace

std::string Conv::describe() const {
  const auto by = [](const Dims3& s) { return str(s[0], "x", s[1], "x", s[2]); };
  return str(transposed ? "transposed convolution " : "convolution ", dtype, " batch ", batch,
             " groups ", groups, " ", in_channels, "->", out_channels, " image ", by(in),
             " kernel ", by(kernel));
}

void convolve(const Conv& c) { run(forward_candidates, c); }

void convolve_weight_backward(const Conv& c) { run(weight_candidates, c); }

bool is_convolution_forced() { return forced_way.load(std::memory_order_relaxed) != nullptr; }

void force_convolution(const std::string& way) {
  const char* found = nullptr;
  for (const Candidate<Conv>& candidate : forward_candidates) {
    if (candidate.name == way) {
      found = candidate.name;
    }
  }
  RL_CHECK(way.empty() || found != nullptr, "no way to convolve is called ", way);
  forced_way.store(found, std::memory_order_relaxed);
}

// ---- the ops ----

bool convolve_empty(const Tensor& out, const Tensor& input, const Tensor& weight,
                    const Tensor& bias) {
  if (input.numel() != 0 && weight.numel() != 0) {
    return false;
  }
  fill_raw(out, 0);
  if (bias.defined()) {
    DimVector strides(static_cast<size_t>(out.dim()), 0);
    strides[1] = 1;
    copy_raw(out, make_view(bias, {out.sizes(), strides, bias.storage_offset()}));
  }
  return true;
}

namespace {

Images images_of(const Tensor& t) {
  Images x{t.data_ptr(), {}};
  const int missing = static_cast<int>(5 - t.dim());
  x.strides[0] = t.strides()[0];
  x.strides[1] = t.strides()[1];
  for (int d = 2; d < 5; d++) {
    x.strides[d] = d - missing >= 2 ? t.strides()[d - missing] : 0;
  }
  return x;
}

// The last dimensions of `list`, ones (or `fill`) before them.
Dims3 last_dims(IntArrayRef list, int64_t dims, int64_t fill) {
  Dims3 out = {fill, fill, fill};
  for (int64_t d = 0; d < dims; d++) {
    out[3 - dims + d] = list[list.size() - dims + d];
  }
  return out;
}

Conv make_conv(const Tensor& input, const Tensor& weight, const Tensor& output, IntArrayRef stride,
               IntArrayRef padding, IntArrayRef dilation, bool transposed, int64_t groups) {
  const int64_t dims = input.dim() - 2;
  return {.dtype = input.dtype(),
          .transposed = transposed,
          .batch = input.size(0),
          .groups = groups,
          .in_channels = input.size(1) / groups,
          .out_channels = output.size(1) / groups,
          .in = last_dims(input.sizes(), dims, 1),
          .out = last_dims(output.sizes(), dims, 1),
          .kernel = last_dims(weight.sizes(), dims, 1),
          .stride = last_dims(stride, dims, 1),
          .padding = last_dims(padding, dims, 0),
          .dilation = last_dims(dilation, dims, 1),
          .input = images_of(input),
          .output = images_of(output),
          .weight = weight.data_ptr()};
}

}  // namespace

void convolution(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                 IntArrayRef, int64_t groups) {
  if (out.numel() == 0 || convolve_empty(out, input, weight, bias)) {
    return;
  }
  Conv c = make_conv(input, weight, out, stride, padding, dilation, transposed, groups);
  c.bias = bias.defined() ? bias.data_ptr() : nullptr;
  c.kept = find_kept_weight(weight);
  convolve(c);
}

void convolution_weight_backward(const Tensor& out, const Tensor& grad, const Tensor& input,
                                 IntArrayRef, IntArrayRef stride, IntArrayRef padding,
                                 IntArrayRef dilation, int64_t groups) {
  if (out.numel() == 0) {
    return;
  }
  if (grad.numel() == 0 || input.numel() == 0) {
    fill_raw(out, 0);
    return;
  }
  convolve_weight_backward(make_conv(input, out, grad, stride, padding, dilation, false, groups));
}

}  // namespace rushlight::cpu
