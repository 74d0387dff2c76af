// The struct of CUDA's kernels. It refers to all of them weakly, so that what nobody defines is
// null, which callers meet as NotImplementedError.
#define RL_COLUMN __attribute__((weak))
#include "cuda/column.h"

namespace rushlight::cuda {

#define RL_ROW(name) .name = cuda::name,
#define RL_ANYWHERE_ROW(name) .name = anywhere::name,
const KernelTable table = {RL_ISA_KERNELS(RL_ROW) RL_ONCE_KERNELS(RL_ROW)
                               RL_ANYWHERE_KERNELS(RL_ANYWHERE_ROW)};

#define RL_NAME(name) #name,
const char* const kernel_names[] = {RL_ISA_KERNELS(RL_NAME) RL_ONCE_KERNELS(RL_NAME)
                                        RL_ANYWHERE_KERNELS(RL_NAME) nullptr};

}  // namespace rushlight::cuda
