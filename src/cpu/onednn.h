// oneDNN, called on one thread from tiles of our own. This, onednn_common.h, onednn_conv.h and the
// sources alone know it. A `_refusal` says null where the function of that name takes the problem,
// else why not.
#pragma once

#include <string>

#include "cpu/conv.h"
#include "cpu/gemm.h"

namespace rushlight::cpu::onednn {

// "3.5.1"; "" where the build has none.
RL_API std::string version();

// The 16-bit floats, where the processor multiplies them itself; one matrix, on the calling thread.
const char* matmul_refusal(const Gemm& problem);
void matmul(const Gemm& tile);
// Bytes times int8 in int32 (`bytes_gemm` of cpu/gemm.h), on the calling thread.
const char* matmul_bytes_refusal(const Gemm& problem);
void matmul_bytes(const Gemm& tile, ScalarType a);

// Whole convolutions, parallel over pieces of them.
const char* convolve_refusal(const Conv& problem);
void convolve(const Conv& problem);
const char* convolve_weight_backward_refusal(const Conv& problem);
void convolve_weight_backward(const Conv& problem);

}  // namespace rushlight::cpu::onednn
