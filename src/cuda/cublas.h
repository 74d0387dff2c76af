// cuBLASLt, loaded when the first matrices are multiplied: the library is large, and programs that
// only ask for devices need not have it.
#pragma once

#include <cublasLt.h>

namespace rushlight::cuda {

#define RL_CUBLAS_FUNCTIONS(_)            \
  _(cublasLtCreate)                       \
  _(cublasLtMatmul)                       \
  _(cublasLtMatmulDescCreate)             \
  _(cublasLtMatmulDescDestroy)            \
  _(cublasLtMatmulDescSetAttribute)       \
  _(cublasLtMatrixLayoutCreate)           \
  _(cublasLtMatrixLayoutDestroy)          \
  _(cublasLtMatrixLayoutSetAttribute)     \
  _(cublasLtMatmulPreferenceCreate)       \
  _(cublasLtMatmulPreferenceDestroy)      \
  _(cublasLtMatmulPreferenceSetAttribute) \
  _(cublasLtMatmulAlgoGetHeuristic)       \
  _(cublasLtGetStatusString)

struct CublasLt {
#define RL_POINTER(name) decltype(&::name) name;
  RL_CUBLAS_FUNCTIONS(RL_POINTER)
#undef RL_POINTER
};

// RuntimeError with where to get it when the library is missing.
const CublasLt& cublas();
// The handle of a device, for all streams.
cublasLtHandle_t cublas_handle(int device);
void check(cublasStatus_t status);

}  // namespace rushlight::cuda
