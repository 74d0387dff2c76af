// Weights in blocks of GGUF on the CPU (ops/decoding.py): their numbers, packing, and products.
#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "cpu/gguf_kernels.h"
#include "cpu/int8_product.h"
#include "cpu/rounded_rows.h"
#include "generated/kernels.h"

namespace rushlight::cpu {
namespace {

float half_at(const uint8_t* p) {
  Half h;
  std::memcpy(&h, p, sizeof(h));
  return h;
}

// ---- numbers ----

// The scale and the minimum of part j of eight: 6 bits each, of 12 bytes.
struct ScaleAndMinimum {
  float scale;
  float minimum;
};
ScaleAndMinimum scale_and_minimum(const uint8_t* s, int64_t j) {
  if (j < 4) {
    return {static_cast<float>(s[j] & 63), static_cast<float>(s[j + 4] & 63)};
  }
  return {static_cast<float>((s[j + 4] & 15) | (s[j - 4] >> 6) << 4),
          static_cast<float>((s[j + 4] >> 4) | (s[j] >> 6) << 4)};
}

void numbers_q8_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int64_t i = 0; i < 32; i++) {
    out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
  }
}

void numbers_q4_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int64_t i = 0; i < 16; i++) {
    const int32_t two = block[2 + i];
    out[i] = d * static_cast<float>((two & 15) - 8);
    out[16 + i] = d * static_cast<float>((two >> 4) - 8);
  }
}

void numbers_q4_k(const uint8_t* block, float* out) {
  const float d = half_at(block);
  const float minimum = half_at(block + 2);
  for (int64_t j = 0; j < 8; j++) {
    const ScaleAndMinimum of = scale_and_minimum(block + 4, j);
    const float step = d * of.scale;
    const float low = minimum * of.minimum;
    const uint8_t* const codes = block + 16 + j / 2 * 32;
    for (int64_t i = 0; i < 32; i++) {
      const int32_t code = j % 2 == 0 ? codes[i] & 15 : codes[i] >> 4;
      out[j * 32 + i] = step * static_cast<float>(code) - low;
    }
  }
}

void numbers_q6_k(const uint8_t* block, float* out) {
  const float d = half_at(block + 208);
  for (int64_t i = 0; i < 256; i++) {
    const int64_t half = i / 128;
    const int64_t quarter = i / 32 % 4;
    const int64_t place = i % 32;
    const int32_t lower = block[half * 64 + quarter % 2 * 32 + place] >> (quarter / 2 * 4) & 15;
    const int32_t upper = block[128 + half * 32 + place] >> (quarter * 2) & 3;
    const auto scale = static_cast<float>(static_cast<int8_t>(block[192 + i / 16]));
    out[i] = d * scale * static_cast<float>((lower | upper << 4) - 32);
  }
}

using Numbers = void (*)(const uint8_t* block, float* out);
constexpr std::array<Numbers, 4> numbers_of = {numbers_q8_0, numbers_q4_0, numbers_q4_k,
                                               numbers_q6_k};

// ---- packing ----

// Copies the units of some results between rows of blocks and their panel.
template <bool to_panel>
void move_panel(const GgufBlock& f, int64_t blocks, int64_t results, uint8_t* rows,
                uint8_t* panel) {
  int64_t before = 0;
  for (const GgufField& field : f.fields) {
    for (int64_t b = 0; b < blocks; b++) {
      for (int64_t i = 0; i < field.count; i++) {
        for (int64_t r = 0; r < results; r++) {
          uint8_t* const at = rows + (r * blocks + b) * f.bytes() + before + i * field.unit;
          uint8_t* const packed = panel + ((b * field.count + i) * int8_panel + r) * field.unit;
          std::memcpy(to_panel ? packed : at, to_panel ? at : packed, field.unit);
        }
      }
    }
    before += field.bytes();
    panel += field.bytes() * blocks * int8_panel;
  }
}

template <bool to_panel>
void move_panels(const GgufBlock& f, int64_t row_bytes, int64_t results, uint8_t* rows,
                 uint8_t* panels) {
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, row_bytes));
  parallel_for(0, int8_panels(results), grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const int64_t here = std::min(int8_panel, results - p * int8_panel);
      move_panel<to_panel>(f, row_bytes / f.bytes(), here, rows + p * int8_panel * row_bytes,
                           panels + p * int8_panel * row_bytes);
    }
  });
}

}  // namespace

void _gguf_dequantize(const Tensor& out, const Tensor& blocks, std::string_view format) {
  const GgufBlock& f = *find_gguf_block(format);
  const Numbers numbers = numbers_of[static_cast<size_t>(f.format)];
  const auto* const from = blocks.data<uint8_t>();
  auto* const to = out.data<float>();
  parallel_for(0, out.numel() / f.numbers, 4096 / f.numbers, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      numbers(from + b * f.bytes(), to + b * f.numbers);
    }
  });
}

void _gguf_pack(const Tensor& out, const Tensor& blocks, std::string_view format) {
  auto* const panels = out.data<uint8_t>();
  const int64_t whole = blocks.size(0) / int8_panel * out.size(1);
  std::memset(panels + whole, 0, static_cast<size_t>(out.numel() - whole));
  move_panels<true>(*find_gguf_block(format), blocks.size(1), blocks.size(0),
                    blocks.data<uint8_t>(), panels);
}

void _gguf_unpack(const Tensor& out, const Tensor& panels, std::string_view format,
                  int64_t results) {
  move_panels<false>(*find_gguf_block(format), out.size(1), results, out.data<uint8_t>(),
                     panels.data<uint8_t>());
}

void _gguf_linear(const Tensor& out, const Tensor& input, const Tensor& panels, const Tensor& bias,
                  std::string_view format, int64_t results) {
  if (out.numel() == 0) {
    return;
  }
  const GgufBlock& f = *find_gguf_block(format);
  const RoundedRows a(input, out.numel() / results, f.numbers, f.part);
  const GgufGemm g{.a = a.codes,
                   .format = f.format,
                   .panels = panels.data<uint8_t>(),
                   .bias = bias.defined() ? bias.data<float>() : nullptr,
                   .out = out.data<float>(),
                   .columns = results};
  for_tiles_of_panels({.rows = a.rows,
                       .columns = results,
                       .row_bytes = a.terms,
                       .rows_at_once = gguf_kernels().rows},
                      gguf_kernels().multiply, g);
}

}  // namespace rushlight::cpu
