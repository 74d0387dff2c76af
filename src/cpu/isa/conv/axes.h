// What the convolutions of our own share: how the outputs of one dimension read the input, and
// the sum of gradients that several tasks have computed.
#pragma once

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "cpu/conv.h"

namespace rushlight::cpu::RL_ISA {

// One dimension of one phase: output i of `count` lies at first + i * step and reads slab
// coordinates base + i * stride + offset for each tap. The offsets of neighbouring taps differ by
// one number.
struct ConvAxis {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
  int64_t base = 0;
  int64_t stride = 1;
  std::vector<int64_t> taps;     // kernel indices
  std::vector<int64_t> offsets;  // of the taps, in slab coordinates
  int64_t low = 0;               // slab coordinate of input element 0
  int64_t size = 0;              // slab coordinates in use
};

// An ordinary convolution has one phase, a transposed one as many as its stride.
inline std::vector<ConvAxis> axes_of(const Conv& c, int d) {
  const int64_t kernel = c.kernel[d];
  const int64_t stride = c.stride[d];
  const int64_t dilation = c.dilation[d];
  std::vector<ConvAxis> phases;
  if (!c.transposed) {
    ConvAxis a;
    a.count = c.out[d];
    a.stride = stride;
    a.low = c.padding[d];
    for (int64_t k = 0; k < kernel; k++) {
      a.taps.push_back(k);
      a.offsets.push_back(k * dilation);
    }
    a.size = (a.count - 1) * stride + (kernel - 1) * dilation + 1;
    phases.push_back(std::move(a));
    return phases;
  }
  // Output y reads input (y + padding - k * dilation) / stride where that is whole: y + padding =
  // stride * u + phase.
  const int64_t reach = (kernel - 1) * dilation / stride;
  for (int64_t phase = 0; phase < stride; phase++) {
    ConvAxis a;
    a.base = std::max<int64_t>(0, (c.padding[d] - phase + stride - 1) / stride);
    a.first = stride * a.base + phase - c.padding[d];
    a.step = stride;
    a.count = a.first < c.out[d] ? (c.out[d] - 1 - a.first) / stride + 1 : 0;
    a.low = reach;
    a.size = a.base + a.count + reach;
    for (int64_t k = 0; k < kernel; k++) {
      if (k * dilation % stride == phase % stride) {
        a.taps.push_back(k);
        a.offsets.push_back(reach - (k * dilation - phase) / stride);
      }
    }
    if (a.count > 0) {
      phases.push_back(std::move(a));
    }
  }
  return phases;
}

// to[i] = the sum of sums[k * n + i] for k < chunks, in order.
template <class S, class T>
void add_chunks(S* to, const T* sums, int64_t n, int64_t chunks) {
  parallel_for(0, n, 32768, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      T sum = sums[i];
      for (int64_t k = 1; k < chunks; k++) {
        sum += sums[k * n + i];
      }
      to[i] = S(sum);
    }
  });
}

}  // namespace rushlight::cpu::RL_ISA
