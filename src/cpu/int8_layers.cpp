// The layers of ops/int8.py on the CPU: numbers become codes, windows become rows of codes, and
// what follows is in cpu/int8_product.h.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/parallel.h"
#include "cpu/int8_product.h"
#include "generated/kernels.h"
#include "kernels/qparams.h"

namespace rushlight::cpu {
namespace {

const float* floats_or_null(const Tensor& t) { return t.defined() ? t.data<float>() : nullptr; }

// ---- a linear layer whose input gets a scale of its own ----

struct Range {
  float low;
  float high;
};

Range range_of(const float* x, int64_t n) {
  if (n == 0) {
    return {0, 0};
  }
  constexpr int64_t chunk = 1 << 16;
  const Scratch<Range> parts(num_chunks(0, n, chunk));
  parallel_for(0, n, chunk, [&](int64_t begin, int64_t end) {
    Range& part = parts[begin / chunk];
    int8_kernels().limits(x + begin, end - begin, part.low, part.high);
  });
  Range all = parts[0];
  for (int64_t i = 1; i < num_chunks(0, n, chunk); i++) {
    // Once NaN, always NaN.
    all.low = parts[i].low < all.low || parts[i].low != parts[i].low ? parts[i].low : all.low;
    all.high =
        parts[i].high > all.high || parts[i].high != parts[i].high ? parts[i].high : all.high;
  }
  return all;
}

// A matrix of numbers as rows of codes, and what a step of them is.
struct DynamicCodes {
  int64_t rows;
  int64_t terms;
  int64_t row_bytes;
  Scratch<uint8_t> codes;
  Scratch<float> row_steps;
  bool seven_bits = false;
  int32_t zero_point = 128;
  float step = 1;  // beside that of a row

  DynamicCodes(const float* x, int64_t rows, int64_t terms, bool reduce_range, bool by_rows)
      : rows(rows),
        terms(terms),
        row_bytes(code_row_bytes(terms)),
        codes(rows * row_bytes),
        row_steps(by_rows ? rows : 0) {
    if (by_rows) {
      for_rows([&](int64_t i) { round_row_by_itself(x + i * terms, i); });
      return;
    }
    const Range range = range_of(x, rows * terms);
    const Qparams q = choose_qparams(range.low, range.high,
                                     {.first = 0, .last = 255, .reduce_range = reduce_range});
    step = static_cast<float>(q.scale);
    zero_point = static_cast<int32_t>(q.zero_point);
    const Int8Codes how = {1 / step, static_cast<float>(q.zero_point)};
    for_rows([&](int64_t i) { round_row(x + i * terms, how, i); });
    // Larger numbers have no smaller codes.
    uint8_t last = 0;
    int8_kernels().to_codes(&range.high, 1, how, &last);
    seven_bits = last < 128;
  }

  template <class F>
  void for_rows(const F& f) const {
    const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, row_bytes));
    parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        f(i);
      }
    });
  }

  void round_row(const float* x, Int8Codes how, int64_t i) const {
    uint8_t* const row = codes + i * row_bytes;
    int8_kernels().to_codes(x, terms, how, row);
    std::memset(row + terms, 0, row_bytes - terms);
  }

  // The largest number has the code 127 more than that of 0.
  void round_row_by_itself(const float* x, int64_t i) const {
    const Range range = range_of(x, terms);
    constexpr float least_step = 1e-5F;
    const float largest = std::max(-range.low, range.high);
    row_steps[i] = largest / 127 < least_step ? least_step : largest / 127;
    round_row(x, {1 / row_steps[i], 128}, i);
  }
};

}  // namespace

void _int8_linear_dynamic(const Tensor& out, const Tensor& input, const Tensor& weight,
                          const Tensor& sums, const Tensor& steps, const Tensor& bias,
                          bool reduce_range, bool by_rows, bool relu) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t columns = sums.size(0);
  const DynamicCodes a(input.data<float>(), out.numel() / columns, input.size(-1), reduce_range,
                       by_rows);
  const Scratch<float> factors(columns);
  const float* const step = steps.data<float>();
  for (int64_t j = 0; j < columns; j++) {
    factors[j] = step[j] * a.step;
  }
  multiply_int8({.a = a.codes,
                 .a_row = a.row_bytes,
                 .seven_bits = a.seven_bits,
                 .panels = weight.data<int8_t>(),
                 .groups = weight.size(2),
                 .columns = columns,
                 .column_sums = sums.data<int32_t>(),
                 .zero_point = a.zero_point,
                 .result = {.kind = Int8Result::numbers,
                            .data = out.data_ptr(),
                            .row = columns,
                            .factors = factors,
                            .row_factors = by_rows ? a.row_steps.data() : nullptr,
                            .bias = floats_or_null(bias),
                            .relu = relu}},
                a.rows);
}

namespace {

// ---- convolutions of codes ----

struct Window {
  int64_t kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t padding[3] = {};
  int64_t dilation[3] = {1, 1, 1};
  int64_t in[3] = {1, 1, 1};
  int64_t out[3] = {1, 1, 1};
  int64_t channels = 0;

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t positions() const { return out[0] * out[1] * out[2]; }

  bool is_one_element() const {
    bool one = taps() == 1;
    for (int d = 0; d < 3; d++) {
      one = one && stride[d] == 1 && padding[d] == 0;
    }
    return one;
  }

  // Calls f(tap, count, codes, null in the padding) for runs of taps of a result whose codes lie
  // side by side.
  template <class F>
  void for_runs(const uint8_t* images, int64_t result, const F& f) const {
    const int64_t n = result / positions();
    const int64_t at[3] = {result / (out[1] * out[2]) % out[0], result / out[2] % out[1],
                           result % out[2]};
    const int64_t first = at[2] * stride[2] - padding[2];
    const bool whole = dilation[2] == 1 && first >= 0 && first + kernel[2] <= in[2];
    int64_t tap = 0;
    for (int64_t i = 0; i < kernel[0]; i++) {
      const int64_t z = at[0] * stride[0] - padding[0] + i * dilation[0];
      for (int64_t j = 0; j < kernel[1]; j++) {
        const int64_t y = at[1] * stride[1] - padding[1] + j * dilation[1];
        const bool inside = z >= 0 && z < in[0] && y >= 0 && y < in[1];
        const int64_t row = ((n * in[0] + z) * in[1] + y) * in[2];
        if (!inside || whole) {
          f(tap, kernel[2], inside ? images + (row + first) * channels : nullptr);
          tap += kernel[2];
          continue;
        }
        for (int64_t k = 0; k < kernel[2]; k++, tap++) {
          const int64_t x = first + k * dilation[2];
          f(tap, 1, x >= 0 && x < in[2] ? images + (row + x) * channels : nullptr);
        }
      }
    }
  }
};

Window window_of(const Tensor& out, const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                 IntArrayRef padding, IntArrayRef dilation) {
  Window w;
  w.channels = input.size(-1);
  const size_t dims = kernel.size();
  for (size_t d = 0; d < dims; d++) {
    const size_t to = 3 - dims + d;
    w.kernel[to] = kernel[d];
    w.stride[to] = stride[d];
    w.padding[to] = padding[d];
    w.dilation[to] = dilation[d];
    w.in[to] = input.size(static_cast<int64_t>(d) + 1);
    w.out[to] = out.size(static_cast<int64_t>(d) + 1);
  }
  return w;
}

// What an affine layer of codes makes of sums: (s + bias / f) * (f / result_scale), where f is what
// a step of the sums of a column is.
struct CodeResult {
  Scratch<float> factors;
  Scratch<float> offsets;
  Int8Result to;

  CodeResult(const Tensor& out, const Tensor& steps, const Tensor& bias, double scale,
             double result_scale, int64_t zero_point, bool relu)
      : factors(steps.numel()), offsets(steps.numel()) {
    const int64_t n = steps.numel();
    const float* const step = steps.data<float>();
    const float* const numbers = floats_or_null(bias);
    for (int64_t j = 0; j < n; j++) {
      const float f = step[j] * static_cast<float>(scale);
      factors[j] = f / static_cast<float>(result_scale);
      offsets[j] = numbers == nullptr ? 0 : numbers[j] / f;
    }
    const float first = out.dtype() == kInt8 ? -128 : 0;
    const auto zero = static_cast<float>(zero_point);
    to = {.kind = Int8Result::codes,
          .data = out.data_ptr(),
          .row = n,
          .factors = factors,
          .bias = numbers == nullptr ? nullptr : offsets.data(),
          .zero_point = zero,
          .first = relu ? std::max(first, zero) : first,
          .last = first + 255};
  }
};

// Codes as uint8: those of int8 are 128 more.
const uint8_t* unsigned_codes(const Tensor& input, const Scratch<uint8_t>& copy) {
  const auto* const codes = static_cast<const uint8_t*>(input.data_ptr());
  if (input.dtype() == kUInt8) {
    return codes;
  }
  uint8_t* const to = copy;
  parallel_for(0, input.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      to[i] = codes[i] ^ 128;
    }
  });
  return copy;
}

void convolve_channels(const Window& w, const uint8_t* images, const Tensor& weight, int32_t zero,
                       int64_t results, const Int8Result& to) {
  const int64_t taps = w.taps();
  const int64_t grain = std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, taps * w.channels));
  parallel_for(0, results, grain, [&](int64_t begin, int64_t end) {
    const Scratch<const uint8_t*> places((end - begin) * taps);
    for (int64_t i = begin; i < end; i++) {
      const uint8_t** const of_result = places + (i - begin) * taps;
      w.for_runs(images, i, [&](int64_t tap, int64_t count, const uint8_t* x) {
        for (int64_t k = 0; k < count; k++) {
          of_result[tap + k] = x == nullptr ? nullptr : x + k * w.channels;
        }
      });
    }
    Int8Depthwise d{places, taps, weight.data<int8_t>(), w.channels, zero, to};
    d.result.data = static_cast<uint8_t*>(to.data) + begin * to.row;
    int8_kernels().depthwise(d, 0, end - begin);
  });
}

// The windows of results from `first` on as rows of codes, of the channels of one group.
void gather(const Window& w, const uint8_t* images, int64_t channel, int64_t channels, uint8_t zero,
            int64_t first, int64_t last, uint8_t* to, int64_t row_bytes) {
  const int64_t terms = w.taps() * channels;
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / row_bytes);
  parallel_for(first, last, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      uint8_t* const row = to + (i - first) * row_bytes;
      w.for_runs(images, i, [&](int64_t tap, int64_t count, const uint8_t* x) {
        if (x == nullptr) {
          std::memset(row + tap * channels, zero, count * channels);
        } else if (channels == w.channels) {
          std::memcpy(row + tap * channels, x, count * channels);
        } else {
          for (int64_t k = 0; k < count; k++) {
            std::memcpy(row + (tap + k) * channels, x + k * w.channels + channel, channels);
          }
        }
      });
      std::memset(row + terms, 0, row_bytes - terms);
    }
  });
}

// Bytes of rows of codes that are made at once.
constexpr int64_t most_gathered = int64_t{4} << 20;

// An image with the zero point around it, so that every window lies within.
struct PaddedImages {
  PaddedImages(const Window& w, const uint8_t* images, int64_t count, uint8_t zero)
      : height(w.in[1] + 2 * w.padding[1]),
        width(w.in[2] + 2 * w.padding[2]),
        codes(count * height * width * w.channels) {
    const int64_t row = width * w.channels;
    const int64_t before = w.padding[2] * w.channels;
    const int64_t inside = w.in[2] * w.channels;
    const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, row));
    parallel_for(0, count * height, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        uint8_t* const to = codes + i * row;
        const int64_t y = i % height - w.padding[1];
        if (y < 0 || y >= w.in[1]) {
          std::memset(to, zero, row);
          continue;
        }
        std::memset(to, zero, before);
        std::memcpy(to + before, images + (i / height * w.in[1] + y) * inside, inside);
        std::memset(to + before + inside, zero, row - before - inside);
      }
    });
  }

  int64_t height;
  int64_t width;
  Scratch<uint8_t> codes;
};

// Weights that stay in the second-level cache, as each row of a result reads all of them.
constexpr int64_t most_weight_bytes = int64_t{512} << 10;

// Whether windows of a row of results are read where they lie, without rows of their codes. The
// image with what is around it is at most nine times the image.
bool reads_in_place(const Window& w, const Int8Gemm& g, int64_t groups) {
  return groups == 1 && w.kernel[0] == 1 && w.in[0] == 1 && w.padding[0] == 0 && w.taps() > 1 &&
         w.padding[1] <= w.in[1] && w.padding[2] <= w.in[2] && w.out[2] >= int8_panel &&
         w.channels > 0 && w.channels % int8_group == 0 &&
         int8_kernels().takes_runs(w.channels / int8_group) &&
         int8_panels(g.columns) * int8_panel_bytes(g.groups) <= most_weight_bytes;
}

void convolve_in_place(const Window& w, const uint8_t* images, int64_t results, Int8Gemm g) {
  const int64_t rows = results / w.out[2];
  const PaddedImages padded(w, images, rows / w.out[1], static_cast<uint8_t>(g.zero_point));
  const int64_t row = padded.width * w.channels;
  DimVector offsets;
  for (int64_t i = 0; i < w.kernel[1]; i++) {
    for (int64_t j = 0; j < w.kernel[2]; j++) {
      offsets.push_back(i * w.dilation[1] * row + j * w.dilation[2] * w.channels);
    }
  }
  g.a_row = w.stride[2] * w.channels;
  g.run_offsets = offsets.data();
  g.runs = w.taps();
  g.seven_bits = int8_kernels().are_seven_bits(padded.codes, rows / w.out[1] * padded.height * row);
  const int64_t work = w.out[2] * g.groups * int8_group * g.columns;
  parallel_for(0, rows, std::max<int64_t>(1, (1 << 20) / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      Int8Gemm one = g;
      const int64_t y = i / w.out[1] * padded.height + i % w.out[1] * w.stride[1];
      one.a = padded.codes + y * row;
      one.result.data = static_cast<uint8_t*>(g.result.data) + i * w.out[2] * g.result.row;
      int8_kernels().multiply(one, 0, w.out[2], 0, int8_panels(g.columns));
    }
  });
}

void convolve_group(const Window& w, const uint8_t* images, int64_t group, int64_t channels,
                    int64_t results, Int8Gemm g) {
  const int64_t terms = w.taps() * channels;
  const int64_t offset = group * g.columns;
  g.column_sums += offset;
  g.result.factors += offset;
  g.result.bias += g.result.bias == nullptr ? 0 : offset;
  auto* const data = static_cast<uint8_t*>(g.result.data) + offset;
  g.result.data = data;
  if (w.is_one_element() && channels == w.channels && terms % int8_group == 0 &&
      (terms % 1024 != 0 || results < 4)) {
    g.a = images;
    g.a_row = terms;
    g.seven_bits = int8_kernels().are_seven_bits(images, results * terms);
    multiply_int8(g, results);
    return;
  }
  g.a_row = std::max(code_row_bytes(terms), int8_group);
  const int64_t rows = std::max<int64_t>(1, std::min(results, most_gathered / g.a_row));
  const Scratch<uint8_t> codes(rows * g.a_row);
  g.a = codes;
  for (int64_t i = 0; i < results; i += rows) {
    const int64_t last = std::min(i + rows, results);
    gather(w, images, group * channels, channels, static_cast<uint8_t>(g.zero_point), i, last,
           codes, g.a_row);
    g.seven_bits = int8_kernels().are_seven_bits(codes, (last - i) * g.a_row);
    g.result.data = data + i * g.result.row;
    multiply_int8(g, last - i);
  }
}

}  // namespace

void _int8_convolution(const Tensor& out, const Tensor& input, double scale, int64_t zero_point,
                       const Tensor& weight, const Tensor& sums, const Tensor& steps,
                       const Tensor& bias, bool relu, double result_scale,
                       int64_t result_zero_point, IntArrayRef kernel, IntArrayRef stride,
                       IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  if (out.numel() == 0) {
    return;
  }
  const Window w = window_of(out, input, kernel, stride, padding, dilation);
  const CodeResult result(out, steps, bias, scale, result_scale, result_zero_point, relu);
  const Scratch<uint8_t> copy(input.dtype() == kInt8 ? input.numel() : 0);
  const uint8_t* const images = unsigned_codes(input, copy);
  const auto zero = static_cast<int32_t>(input.dtype() == kInt8 ? zero_point + 128 : zero_point);
  const int64_t results = out.numel() / sums.size(0);
  if (weight.dim() == 2) {
    convolve_channels(w, images, weight, zero, results, result.to);
    return;
  }
  const Int8Gemm g{.groups = weight.size(2),
                   .columns = sums.size(0) / groups,
                   .column_sums = sums.data<int32_t>(),
                   .zero_point = zero,
                   .result = result.to};
  if (reads_in_place(w, g, groups)) {
    Int8Gemm whole = g;
    whole.panels = weight.data<int8_t>();
    convolve_in_place(w, images, results, whole);
    return;
  }
  for (int64_t group = 0; group < groups; group++) {
    Int8Gemm part = g;
    part.panels = weight.data<int8_t>() + group * weight.strides()[0];
    convolve_group(w, images, group, w.channels / groups, results, part);
  }
}

}  // namespace rushlight::cpu
