// oneDNN, called on one thread from tiles of our own. This and onednn.cpp alone know it.
#pragma once

#include "cpu/gemm.h"

namespace rushlight::cpu::onednn {

// Null where `sgemm` takes the problem, else why not.
const char* sgemm_refusal(const Gemm& problem);
// float32, one matrix, on the calling thread.
void sgemm(const Gemm& tile);

}  // namespace rushlight::cpu::onednn
