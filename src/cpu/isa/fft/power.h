// Fourier transforms of lines of 2^k numbers (fft/power.cpp).
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::cpu::RL_ISA {

// A pass along `axis`, times a factor; false, and nothing done, where lines are of other lengths.
// The results of real numbers are the first half and one, in `out`, and so are the inputs of the
// way back.
bool power_c2c(const Tensor& out, const Tensor& in, int64_t axis, bool forward, double factor);
bool power_r2c(const Tensor& out, const Tensor& in, int64_t axis, double factor);
bool power_c2r(const Tensor& out, const Tensor& in, int64_t axis, double factor);

}  // namespace rushlight::cpu::RL_ISA
