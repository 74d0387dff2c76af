// The CUDA column of the kernel table. A kernel joins by being defined: `void cuda::NAME(…)`, with
// the signature of its entry in struct KernelTable (generated/kernels.h).
#pragma once

#include "generated/kernels.h"

// column.cpp refers to kernels weakly: those that are not defined are null there.
#ifndef RL_COLUMN
#define RL_COLUMN
#endif

namespace rushlight::cuda {

#define RL_DECLARE_CUDA_KERNEL(name) RL_COLUMN RL_DECLARE_KERNEL(name)
RL_ISA_KERNELS(RL_DECLARE_CUDA_KERNEL)
RL_ONCE_KERNELS(RL_DECLARE_CUDA_KERNEL)
#undef RL_DECLARE_CUDA_KERNEL

extern const KernelTable table;
extern const char* const kernel_names[];  // in the order of the struct; ends with null

}  // namespace rushlight::cuda
