// _block_linear on the CPU: rows are rounded, then multiplied by blocks (cpu/block_kernels.h).
#include "cpu/block_kernels.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/int8_product.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

void _block_linear(const Tensor& out, const Tensor& input, const Tensor& weight,
                   const Tensor& scales, const Tensor& zeros, const Tensor& bias, int64_t group,
                   int64_t bits) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t terms = input.size(-1);
  const int64_t columns = scales.size(1);
  const int64_t rows = out.numel() / columns;
  const int64_t blocks = terms / group;
  const int64_t row_bytes = code_row_bytes(terms);
  const Scratch<int8_t> codes(rows * row_bytes);
  const Scratch<float> steps(rows * blocks);
  const Scratch<int32_t> sums(rows * blocks);
  const BlockGemm g{.a = {codes, row_bytes, steps, sums, blocks, group, group},
                    .panels = weight.data<uint8_t>(),
                    .bits = bits,
                    .scales = scales.data<float>(),
                    .zeros = zeros.defined() ? zeros.data<uint8_t>() : nullptr,
                    .bias = bias.defined() ? bias.data<float>() : nullptr,
                    .out = out.data<float>(),
                    .columns = columns};
  const float* const x = input.data<float>();
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, terms));
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      block_kernels().round(x + i * terms, g.a, i);
    }
  });
  for_tiles_of_panels(
      {.rows = rows, .columns = columns, .row_bytes = terms, .rows_at_once = block_kernels().rows},
      block_kernels().multiply, g);
}

}  // namespace rushlight::cpu
