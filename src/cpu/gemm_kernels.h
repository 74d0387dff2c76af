// What src/cpu/isa/matmul/gemm.cpp and gemm_small.cpp offer, once per instruction set. All of it
// runs on the calling thread.
#pragma once

#include "cpu/gemm.h"
#include "cpu/isa_level.h"

namespace rushlight::cpu {

// What the blocked product computes at once, and whether it writes its sums straight to the result,
// so that factors may be read in place.
struct GemmBlock {
  int64_t rows;
  int64_t columns;
  bool in_place;
};

// Any dtype and strides but c.col == 1, one matrix. Sums run over k in order, whatever the tile.
struct BlockedKernels {
  GemmBlock (*block)(ScalarType dtype);
  // In place: A of any strides (complex: a.col == 1), B of real numbers with b.col == 1.
  void (*multiply)(const Gemm& tile, bool a_in_place, bool b_in_place);
};

struct SmallGemmKernels {
  // Matrices of at most `tiny_limit` rows and columns in registers, a batch with one stride. Float
  // and double.
  void (*tiny)(const Gemm& problem);
  // a.col == 1 and b.row == 1: every element of the result is one sum along contiguous memory, in
  // the same order whatever the tile. Floats and 16-bit floats, one matrix.
  void (*dots)(const Gemm& tile);
  // m == 1 and b.col == 1: rows of B are added up. Floats and 16-bit floats, one matrix.
  void (*rows)(const Gemm& tile);
};
inline constexpr int64_t tiny_limit = 16;

namespace v2 {
extern const BlockedKernels blocked_kernels;
extern const SmallGemmKernels small_gemm_kernels;
}  // namespace v2
namespace v3 {
extern const BlockedKernels blocked_kernels;
extern const SmallGemmKernels small_gemm_kernels;
}  // namespace v3
namespace v4 {
extern const BlockedKernels blocked_kernels;
extern const SmallGemmKernels small_gemm_kernels;
}  // namespace v4
inline const BlockedKernels& blocked_kernels() { return RL_ISA_TABLE(blocked_kernels); }
inline const SmallGemmKernels& small_gemm_kernels() { return RL_ISA_TABLE(small_gemm_kernels); }

}  // namespace rushlight::cpu
