// _block_linear on the CPU: rows are rounded, then multiplied by blocks (cpu/block_kernels.h).
#include "cpu/block_kernels.h"

#include "cpu/int8_product.h"
#include "cpu/rounded_rows.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

void _block_linear(const Tensor& out, const Tensor& input, const Tensor& weight,
                   const Tensor& scales, const Tensor& zeros, const Tensor& bias, int64_t group,
                   int64_t bits) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t columns = scales.size(1);
  const RoundedRows a(input, out.numel() / columns, group, group);
  const BlockGemm g{.a = a.codes,
                    .panels = weight.data<uint8_t>(),
                    .bits = bits,
                    .scales = scales.data<float>(),
                    .zeros = zeros.defined() ? zeros.data<uint8_t>() : nullptr,
                    .bias = bias.defined() ? bias.data<float>() : nullptr,
                    .out = out.data<float>(),
                    .columns = columns};
  for_tiles_of_panels({.rows = a.rows,
                       .columns = columns,
                       .row_bytes = a.terms,
                       .rows_at_once = block_kernels().rows},
                      block_kernels().multiply, g);
}

}  // namespace rushlight::cpu
