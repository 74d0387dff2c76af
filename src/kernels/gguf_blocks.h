// Weights in blocks as files of the GGUF format have them, and how they are packed for products.
//
// A block is a few fields one after the other: numbers of 16 bits, bytes with scales, and codes by
// four inputs, each a count of units of some bytes. A row is its blocks, one after the other. A
// packed panel of 16 results has, field by field, for all blocks and all units of the field, the
// units of the 16 results side by side: nothing but the order of the bytes differs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/int8_layout.h"

namespace rushlight {

enum class GgufFormat : uint8_t { Q8_0, Q4_0, Q4_K, Q6_K };

struct GgufField {
  int64_t unit;   // bytes
  int64_t count;  // in a block; 0 where there is no such field

  int64_t bytes() const { return unit * count; }
};

struct GgufBlock {
  GgufFormat format;
  std::string_view name;
  int64_t numbers;  // of a block
  int64_t part;     // inputs whose codes are added up before anything is multiplied by scales
  std::array<GgufField, 4> fields;

  constexpr int64_t bytes() const {
    int64_t sum = 0;
    for (const GgufField& f : fields) {
      sum += f.unit * f.count;
    }
    return sum;
  }
  // Where a field of all blocks of a panel begins.
  constexpr int64_t panel_offset(size_t field, int64_t blocks) const {
    int64_t before = 0;
    for (size_t f = 0; f < field; f++) {
      before += fields[f].unit * fields[f].count;
    }
    return before * blocks * int8_panel;
  }
};

// By GgufFormat. Q8_0: d, codes with a sign. Q4_0: d, codes of which the lower halves of bytes are
// inputs 0 to 15 and the upper ones the others; 8 is 0. Q4_K: d and the d of minima, 6 bits of
// scale and minimum for each part (gguf_scale), codes as Q4_0 has them for each 64 inputs.
// Q6_K: four lower bits of codes, two upper ones, scales of parts, d; 32 is 0.
inline constexpr std::array<GgufBlock, 4> gguf_blocks = {{
    {GgufFormat::Q8_0, "Q8_0", 32, 32, {{{2, 1}, {4, 8}, {1, 0}, {1, 0}}}},
    {GgufFormat::Q4_0, "Q4_0", 32, 32, {{{2, 1}, {4, 4}, {1, 0}, {1, 0}}}},
    {GgufFormat::Q4_K, "Q4_K", 256, 32, {{{2, 2}, {1, 12}, {4, 32}, {1, 0}}}},
    {GgufFormat::Q6_K, "Q6_K", 256, 16, {{{4, 32}, {4, 16}, {1, 16}, {2, 1}}}},
}};

constexpr const GgufBlock& gguf_block(GgufFormat format) {
  return gguf_blocks[static_cast<size_t>(format)];
}

// Null where there is no format of this name.
inline const GgufBlock* find_gguf_block(std::string_view name) {
  for (const GgufBlock& b : gguf_blocks) {
    if (b.name == name) {
      return &b;
    }
  }
  return nullptr;
}

}  // namespace rushlight
