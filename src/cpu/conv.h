// Convolutions on raw memory. cpu/conv.cpp chooses a way for each; src/cpu/isa/conv/conv.cpp has
// the kernels of our own. Everything is three-dimensional here: images of fewer dimensions have
// leading ones of size 1.
#pragma once

#include <array>
#include <string>

#include <rushlight/tensor.h>

#include "cpu/isa_level.h"

namespace rushlight::cpu {

using Dims3 = std::array<int64_t, 3>;
class KeptWeight;

// A batch of images: channels of all groups, any strides (of n, c, d, h, w, in elements).
struct Images {
  void* data;
  std::array<int64_t, 5> strides;
};

struct Conv {
  ScalarType dtype;
  bool transposed = false;
  int64_t batch;
  int64_t groups;
  int64_t in_channels;   // of one group
  int64_t out_channels;  // of one group
  Dims3 in;
  Dims3 out;
  Dims3 kernel;
  Dims3 stride;
  Dims3 padding;
  Dims3 dilation;
  Images input;
  Images output;
  // Dense: [groups * out, in, kernel], or [groups * in, out, kernel] where transposed.
  void* weight;
  const void* bias = nullptr;  // groups * out elements
  KeptWeight* kept = nullptr;  // of the weight, where it stays as it is (cpu/kept_weights.h)

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t pixels() const { return out[0] * out[1] * out[2]; }
  std::string describe() const;
};

// output = convolution of input.
void convolve(const Conv& problem);
// weight = gradient of the weight, where output holds the gradient of the output. Not for
// transposed convolutions, whose weight gradient is that of the convolution with input and output
// exchanged.
void convolve_weight_backward(const Conv& problem);

// For tests and measurements: convolutions go this way alone, be it the fastest or not, and are
// NotImplementedErrors where it cannot take them. An empty name ends that.
RL_API void force_convolution(const std::string& way);
// Whether a way takes what it can, and not what it is best at.
bool is_convolution_forced();

// Sums without terms, of no channels or no pixels: writes the bias alone. On any device.
RL_API bool convolve_empty(const Tensor& out, const Tensor& input, const Tensor& weight,
                           const Tensor& bias);

// One product for the whole batch (conv_columns.cpp): done, or the reason why not.
const char* convolve_by_columns(const Conv& problem);
const char* convolve_weight_by_columns(const Conv& problem);

struct ConvKernels {
  void (*forward)(const Conv& problem);
  void (*weight_backward)(const Conv& problem);
};
RL_DECLARE_ISA_TABLE(ConvKernels, conv_kernels)
inline const ConvKernels& conv_kernels() { return RL_ISA_TABLE(conv_kernels); }

// Many small images side by side (isa/conv/batch.cpp): done, or the reason why not.
struct BatchConvKernels {
  const char* (*forward)(const Conv& problem);
  const char* (*weight_backward)(const Conv& problem);
};
RL_DECLARE_ISA_TABLE(BatchConvKernels, batch_conv_kernels)
inline const BatchConvKernels& batch_conv_kernels() { return RL_ISA_TABLE(batch_conv_kernels); }

// Groups of one or few channels (isa/conv/depthwise.cpp): done, or the reason why not.
struct DepthwiseConvKernels {
  const char* (*forward)(const Conv& problem);
  const char* (*weight_backward)(const Conv& problem);
};
RL_DECLARE_ISA_TABLE(DepthwiseConvKernels, depthwise_conv_kernels)
inline const DepthwiseConvKernels& depthwise_conv_kernels() {
  return RL_ISA_TABLE(depthwise_conv_kernels);
}

// Kernels of 3x3 by Winograd's algorithm (isa/conv/winograd.cpp): done, or the reason why not.
struct WinogradConvKernels {
  const char* (*forward)(const Conv& problem);
};
RL_DECLARE_ISA_TABLE(WinogradConvKernels, winograd_conv_kernels)
inline const WinogradConvKernels& winograd_conv_kernels() {
  return RL_ISA_TABLE(winograd_conv_kernels);
}

}  // namespace rushlight::cpu
