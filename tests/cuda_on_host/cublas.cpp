// cuBLASLt by the definition of a product, in place of src/cuda/cublas.cpp: it checks what cuBLASLt
// would and multiplies in double precision.
#include "cuda/cublas.h"

#include <complex>
#include <cstring>

#include <rushlight/dtype.h>

#include "cuda/runtime.h"

namespace rushlight::cuda {

namespace {

using Number = std::complex<double>;

struct Layout {
  cudaDataType_t type;
  int64_t rows;
  int64_t columns;
  int64_t lead;
  int32_t batch = 1;
  int64_t stride = 0;
  int64_t at(int64_t b, int64_t i, int64_t j) const { return b * stride + i + j * lead; }
};
struct Description {
  cudaDataType_t scale;
  cublasOperation_t first = CUBLAS_OP_N;
  cublasOperation_t second = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

// Calls f with a null pointer to the type of an element.
template <class F>
auto visit(cudaDataType_t type, const F& f) {
  switch (type) {
    case CUDA_R_32F:
      return f(static_cast<float*>(nullptr));
    case CUDA_R_16F:
      return f(static_cast<Half*>(nullptr));
    case CUDA_R_16BF:
      return f(static_cast<BFloat16*>(nullptr));
    case CUDA_C_32F:
      return f(static_cast<std::complex<float>*>(nullptr));
    case CUDA_C_64F:
      return f(static_cast<Number*>(nullptr));
    default:
      return f(static_cast<double*>(nullptr));
  }
}
Number load(const void* data, cudaDataType_t type, int64_t i) {
  return visit(type, [&](auto* of) -> Number {
    using T = std::remove_pointer_t<decltype(of)>;
    const T x = static_cast<const T*>(data)[i];
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return static_cast<float>(x);
    } else {
      return Number(x);
    }
  });
}
void store(void* data, cudaDataType_t type, int64_t i, Number x) {
  visit(type, [&](auto* of) {
    using T = std::remove_pointer_t<decltype(of)>;
    T& to = static_cast<T*>(data)[i];
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, Number>) {
      to = T(x);
    } else if constexpr (std::is_same_v<T, double>) {
      to = x.real();
    } else {
      to = T(static_cast<float>(x.real()));
    }
  });
}

constexpr cublasStatus_t fine = CUBLAS_STATUS_SUCCESS;
constexpr cublasStatus_t wrong = CUBLAS_STATUS_INVALID_VALUE;

template <class T>
cublasStatus_t set(T& field, const void* from, size_t bytes) {
  if (bytes != sizeof field) {
    return wrong;
  }
  std::memcpy(&field, from, bytes);
  return fine;
}

cublasStatus_t set_in_layout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                             const void* from, size_t bytes) {
  auto& x = *reinterpret_cast<Layout*>(layout);
  return name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT            ? set(x.batch, from, bytes)
         : name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET ? set(x.stride, from, bytes)
                                                               : wrong;
}
cublasStatus_t set_in_description(cublasLtMatmulDesc_t description,
                                  cublasLtMatmulDescAttributes_t name, const void* from,
                                  size_t bytes) {
  auto& x = *reinterpret_cast<Description*>(description);
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(x.first, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(x.second, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(x.epilogue, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(x.bias, from, bytes);
    default:
      return wrong;
  }
}

cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                        const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                        cublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
                        cublasLtMatrixLayout_t layout_c, void* d, cublasLtMatrixLayout_t layout_d,
                        const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  const auto& how = *reinterpret_cast<Description*>(description);
  const auto& x = *reinterpret_cast<Layout*>(layout_a);
  const auto& y = *reinterpret_cast<Layout*>(layout_b);
  const auto& z = *reinterpret_cast<Layout*>(layout_c);
  const auto& out = *reinterpret_cast<Layout*>(layout_d);
  const bool x_turned = how.first != CUBLAS_OP_N;
  const bool y_turned = how.second != CUBLAS_OP_N;
  const int64_t depth = x_turned ? x.rows : x.columns;
  if ((x_turned ? x.columns : x.rows) != out.rows || (y_turned ? y.columns : y.rows) != depth ||
      (y_turned ? y.rows : y.columns) != out.columns || x.batch != out.batch ||
      y.batch != out.batch) {
    return wrong;
  }
  const Number factor = load(alpha, how.scale, 0);
  const Number kept = load(beta, how.scale, 0);
  for (int64_t n = 0; n < out.batch; n++) {
    for (int64_t j = 0; j < out.columns; j++) {
      for (int64_t i = 0; i < out.rows; i++) {
        Number sum = 0;
        for (int64_t k = 0; k < depth; k++) {
          sum += load(a, x.type, x_turned ? x.at(n, k, i) : x.at(n, i, k)) *
                 load(b, y.type, y_turned ? y.at(n, j, k) : y.at(n, k, j));
        }
        sum *= factor;
        if (kept != 0.0) {
          sum += kept * load(c, z.type, z.at(n, i, j));
        }
        if (how.epilogue == CUBLASLT_EPILOGUE_BIAS) {
          sum += load(how.bias, out.type, i);
        }
        store(d, out.type, out.at(n, i, j), sum);
      }
    }
  }
  return fine;
}

CublasLt all_functions() {
  CublasLt f{};
  f.cublasLtMatmul = multiply;
  f.cublasLtMatrixLayoutSetAttribute = set_in_layout;
  f.cublasLtMatmulDescSetAttribute = set_in_description;
  f.cublasLtMatrixLayoutCreate = [](cublasLtMatrixLayout_t* layout, cudaDataType type,
                                    uint64_t rows, uint64_t columns, int64_t lead) {
    if (lead < static_cast<int64_t>(rows)) {
      return wrong;
    }
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
        new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), lead});
    return fine;
  };
  f.cublasLtMatrixLayoutDestroy = [](cublasLtMatrixLayout_t layout) {
    delete reinterpret_cast<Layout*>(layout);
    return fine;
  };
  f.cublasLtMatmulDescCreate = [](cublasLtMatmulDesc_t* description, cublasComputeType_t,
                                  cudaDataType_t scale) {
    *description = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{scale});
    return fine;
  };
  f.cublasLtMatmulDescDestroy = [](cublasLtMatmulDesc_t description) {
    delete reinterpret_cast<Description*>(description);
    return fine;
  };
  f.cublasLtMatmulPreferenceCreate = [](cublasLtMatmulPreference_t* p) {
    *p = nullptr;
    return fine;
  };
  f.cublasLtMatmulPreferenceDestroy = [](cublasLtMatmulPreference_t) { return fine; };
  f.cublasLtMatmulPreferenceSetAttribute = [](cublasLtMatmulPreference_t,
                                              cublasLtMatmulPreferenceAttributes_t, const void*,
                                              size_t) { return fine; };
  f.cublasLtMatmulAlgoGetHeuristic =
      [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
         cublasLtMatmulHeuristicResult_t*, int* found) {
        *found = 1;
        return fine;
      };
  f.cublasLtGetStatusString = [](cublasStatus_t) {
    return "the product was not described rightly";
  };
  return f;
}

}  // namespace

const CublasLt& cublas() {
  static const CublasLt functions = all_functions();
  return functions;
}
cublasLtHandle_t cublas_handle(int) { return nullptr; }
void check(cublasStatus_t status) {
  RL_CHECK(status == fine, "CUDA error: cuBLAS: ", cublas().cublasLtGetStatusString(status));
}

}  // namespace rushlight::cuda
