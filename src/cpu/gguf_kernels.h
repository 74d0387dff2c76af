// Products with packed weights in blocks of GGUF (kernels/gguf_blocks.h).
#pragma once

#include "cpu/block_kernels.h"
#include "kernels/gguf_blocks.h"

namespace rushlight::cpu {

struct GgufGemm {
  BlockRows a;
  GgufFormat format;
  const uint8_t* panels;
  const float* bias;  // or null
  float* out;         // (rows, columns)
  int64_t columns;
};

// All of it runs on the calling thread.
struct GgufKernels {
  int64_t rows;  // of A at a time
  void (*multiply)(const GgufGemm& problem, int64_t first_row, int64_t last_row,
                   int64_t first_panel, int64_t last_panel);
};

RL_DECLARE_ISA_TABLE(GgufKernels, gguf_kernels)
inline const GgufKernels& gguf_kernels() { return RL_ISA_TABLE(gguf_kernels); }

}  // namespace rushlight::cpu
