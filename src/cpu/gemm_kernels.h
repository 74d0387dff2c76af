// What src/cpu/isa/gemm.cpp offers, once per instruction set. All of it runs on the calling thread.
#pragma once

#include "cpu/gemm.h"
#include "cpu/isa_level.h"

namespace rushlight::cpu {

struct GemmKernels {
  // Matrices of at most `tiny_limit` rows and columns in registers, no packing. Float and double.
  void (*tiny)(const Gemm& problem);
  // Blocked and packed: any size and strides but c.col == 1; one matrix. Float, double and the
  // 16-bit floats.
  void (*packed)(const Gemm& tile);
  // y = alpha * a @ x + beta * y for one matrix with n == 1, x and y of any stride. Float, double,
  // 16-bit floats.
  void (*vector)(const Gemm& tile);
  // k == 1: every element of a column times every element of a row.
  void (*outer)(const Gemm& tile);
  // to[q * ld + r] = from[r * row + q] for r < rows and q < columns: a transposed copy.
  void (*turn)(float* to, int64_t ld, const float* from, int64_t row, int64_t rows,
               int64_t columns);
};
inline constexpr int64_t tiny_limit = 16;

namespace v2 {
extern const GemmKernels gemm_kernels;
}
namespace v3 {
extern const GemmKernels gemm_kernels;
}
namespace v4 {
extern const GemmKernels gemm_kernels;
}
inline const GemmKernels& gemm_kernels() { return RL_ISA_TABLE(gemm_kernels); }

}  // namespace rushlight::cpu
