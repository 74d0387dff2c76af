// Comes first in every .cu file (the compiler's -include): what the shared formulas of src/kernels
// need to become device code.
#pragma once

#ifdef __CUDACC__
#define RL_INLINE __host__ __device__ __forceinline__
#define RL_DEVICE_MATH "cuda/complex_math.h"
#endif
