// What src/cpu/isa/matmul/gemm.cpp and gemm_small.cpp offer, once per instruction set. All of it
// runs on the calling thread.
#pragma once

#include "cpu/gemm.h"
#include "cpu/isa_level.h"

namespace rushlight::cpu {

// What the blocked product computes at once, whether its factors may be read in place, whether
// copies of A have whole columns, and the bytes of copies: of a row of A and of a column of B.
struct GemmBlock {
  int64_t rows;
  int64_t columns;
  bool a_in_place;
  bool b_in_place;
  bool a_in_columns;
  int64_t row_bytes;
  int64_t column_bytes;
};

// How the blocked product comes to its factors: in place, or through copies. A tile makes its own,
// or finds those of a whole product of `rows` rows, in which it begins at a row and a column.
struct GemmFactors {
  bool a_in_place;
  bool b_in_place;
  const void* a_copy = nullptr;
  const void* b_copy = nullptr;
  int64_t rows = 0;
  int64_t first_row = 0;
  int64_t first_column = 0;
};

// Any dtype and strides but c.col == 1, one matrix. Sums run over k in order, whatever the tile.
// float32 and float64 may have c.row == 1 instead, and then no bias for each column.
// `pairs`: two terms of a sum at once, for dtypes of which has_pairs is true.
struct BlockedKernels {
  bool (*has_pairs)(ScalarType dtype);
  GemmBlock (*block)(const Gemm& problem, bool pairs);
  // Rows of A from `first`, a multiple of block.rows, to `last`; row 0 of all goes to `to`.
  void (*copy_a)(const Gemm& problem, bool pairs, int64_t first, int64_t last, void* to);
  // Panels of B of block.columns columns each; the first of all goes to `to`.
  void (*copy_b)(const Gemm& problem, bool pairs, int64_t first, int64_t last, void* to);
  void (*multiply)(const Gemm& tile, bool pairs, const GemmFactors& factors);
};

struct SmallGemmKernels {
  // Matrices of at most `tiny_limit` rows and columns in registers, a batch with one stride. Float
  // and double.
  void (*tiny)(const Gemm& problem);
  // a.col == 1 and b.row == 1: every element of the result is one sum along contiguous memory, in
  // the same order whatever the tile. Floats and 16-bit floats, one matrix, or, without a bias,
  // one element of each of a batch with one stride.
  void (*dots)(const Gemm& tile);
  // m <= 4 and b.col == 1: rows of B are added up. All real dtypes but bool, one matrix.
  void (*rows)(const Gemm& tile);
};
inline constexpr int64_t tiny_limit = 16;
// Terms of sums of which several, of neighbouring matrices, are taken side by side.
inline constexpr int64_t short_sum = 32;

RL_DECLARE_ISA_TABLE(BlockedKernels, blocked_kernels)
RL_DECLARE_ISA_TABLE(SmallGemmKernels, small_gemm_kernels)
inline const BlockedKernels& blocked_kernels() { return RL_ISA_TABLE(blocked_kernels); }
inline const SmallGemmKernels& small_gemm_kernels() { return RL_ISA_TABLE(small_gemm_kernels); }

}  // namespace rushlight::cpu
