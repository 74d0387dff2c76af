// OpenBLAS, called on one thread from tiles of our own. This and blas.cpp alone know it.
#pragma once

#include <string>

#include "cpu/gemm.h"

namespace rushlight::cpu::blas {

// What the library says of itself, its version among it; "" where the build has none.
RL_API std::string config();

// Null where `gemm` takes the problem, else why not.
const char* gemm_refusal(const Gemm& problem);
// One matrix, on the calling thread.
void gemm(const Gemm& tile);

}  // namespace rushlight::cpu::blas
