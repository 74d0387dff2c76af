// Products with weights that have a scale for each block of terms (ops/int8.py, _block_linear).
// Sums of a block are whole numbers, and blocks are added in order, so that results have the same
// bits on every processor and with any number of threads.
#pragma once

#include <cstdint>

#include "cpu/isa_level.h"
#include "kernels/int8_layout.h"

namespace rushlight::cpu {

// Rows of codes from -127 to 127 with a step for each block, and the sums of the codes of its
// parts.
struct BlockRows {
  int8_t* codes;
  int64_t row;     // codes between rows
  float* steps;    // (rows, blocks)
  int32_t* sums;   // (rows, blocks, parts)
  int64_t blocks;  // of a row
  int64_t block;   // terms of a block
  int64_t part;    // terms of a sum
};

struct BlockGemm {
  BlockRows a;
  const uint8_t* panels;
  int64_t bits;          // of a code: 4 or 8
  const float* scales;   // (blocks, columns)
  const uint8_t* zeros;  // (blocks, columns), or null: the middle code
  const float* bias;     // or null
  float* out;            // (rows, columns)
  int64_t columns;
};

// All of it runs on the calling thread.
struct BlockKernels {
  int64_t rows;  // of A at a time
  void (*round)(const float* x, const BlockRows& to, int64_t row);
  void (*multiply)(const BlockGemm& problem, int64_t first_row, int64_t last_row,
                   int64_t first_panel, int64_t last_panel);
};

RL_DECLARE_ISA_TABLE(BlockKernels, block_kernels)
inline const BlockKernels& block_kernels() { return RL_ISA_TABLE(block_kernels); }

}  // namespace rushlight::cpu
