// A sparse matrix by rows times a dense one, and what a triangular one has been multiplied by.
#pragma once

#include "core/op_support.h"
#include "cpu/isa_level.h"

namespace rushlight::cpu {

struct CsrKernels {
  // `starts` (rows + 1) and `columns` are int64 and in range, `values` and the matrix `dense` have
  // the dtype of `out` (rows, width); all are contiguous.
  void (*multiply)(const Tensor& out, const Tensor& starts, const Tensor& columns,
                   const Tensor& values, const Tensor& dense);
  // `x` (rows, width) holds right sides and becomes the solution for the triangle of a square
  // matrix; entries beyond the triangle are passed over. What is `unit` has ones on its diagonal.
  void (*solve)(const Tensor& x, const Tensor& starts, const Tensor& columns, const Tensor& values,
                bool upper, bool unit);
};
RL_DECLARE_ISA_TABLE(CsrKernels, csr_kernels)
inline const CsrKernels& csr_kernels() { return RL_ISA_TABLE(csr_kernels); }

}  // namespace rushlight::cpu
