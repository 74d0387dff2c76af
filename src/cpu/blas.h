// OpenBLAS, called on one thread from tiles of our own. This and blas.cpp alone know it.
#pragma once

#include "cpu/gemm.h"

namespace rushlight::cpu::blas {

// Null where `gemm` takes the problem, else why not.
const char* gemm_refusal(const Gemm& problem);
// One matrix, on the calling thread.
void gemm(const Gemm& tile);

}  // namespace rushlight::cpu::blas
