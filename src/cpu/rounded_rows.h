// Rows of an input that are rounded to codes for products by blocks.
#pragma once

#include <algorithm>

#include <rushlight/tensor.h>

#include "core/parallel.h"
#include "cpu/block_kernels.h"
#include "cpu/int8_product.h"

namespace rushlight::cpu {

class RoundedRows {
 public:
  // So many rows of float32 numbers; `block` of them share a step, and `part` of them a sum.
  RoundedRows(const Tensor& input, int64_t count, int64_t block, int64_t part)
      : terms(input.size(-1)),
        rows(count),
        codes_(rows * code_row_bytes(terms)),
        steps_(rows * (terms / block)),
        sums_(rows * (terms / part)),
        codes{codes_, code_row_bytes(terms), steps_, sums_, terms / block, block, part} {
    const float* const x = input.data<float>();
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, terms));
    parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        block_kernels().round(x + i * terms, codes, i);
      }
    });
  }

  const int64_t terms;
  const int64_t rows;

 private:
  const Scratch<int8_t> codes_;
  const Scratch<float> steps_;
  const Scratch<int32_t> sums_;

 public:
  const BlockRows codes;
};

}  // namespace rushlight::cpu
