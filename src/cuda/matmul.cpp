// Products of matrices by cuBLASLt: the ops of ops/linalg.py, each of which says what it multiplies
// as tensors of two or three dimensions. cuBLAS counts rows first in memory, so the transposed
// product is asked for: C' = B' A'. float32 is multiplied in float32, never in TF32.
#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "cuda/column.h"
#include "cuda/cublas.h"
#include "cuda/matmul.h"
#include "cuda/memory.h"
#include "cuda/runtime.h"

#include <rushlight/ops.h>

namespace rushlight {

namespace cuda {

namespace {

constexpr size_t workspace_bytes = size_t{32} << 20;

// A matrix as cuBLAS takes it: contiguous along one dimension.
struct Operand {
  Tensor tensor;  // [batch, rows, columns]
  bool transposed = false;
  int64_t lead = 0;  // elements from one row (column where transposed) to the next
  int64_t batch_stride = 0;
};

// t has three dimensions. The strides of dimensions of size 1 do not matter.
bool fits(const Tensor& t, Operand& out) {
  const IntArrayRef n = t.sizes();
  const IntArrayRef s = t.strides();
  out.tensor = t;
  out.batch_stride = n[0] == 1 ? 0 : s[0];
  const bool row_fits = n[2] == 1 || s[2] == 1;
  const bool column_fits = n[1] == 1 || s[1] == 1;
  if (row_fits && (n[1] == 1 || s[1] >= n[2])) {
    out.transposed = false;
    out.lead = n[1] == 1 ? std::max<int64_t>(n[2], 1) : s[1];
    return true;
  }
  if (column_fits && (n[2] == 1 || s[2] >= n[1])) {
    out.transposed = true;
    out.lead = n[2] == 1 ? std::max<int64_t>(n[1], 1) : s[2];
    return true;
  }
  return false;
}

Operand operand(const Tensor& t) {
  Operand out;
  if (!fits(t, out)) {
    (void)fits(contiguous_raw(t), out);
  }
  return out;
}

struct Types {
  cudaDataType_t data;
  cublasComputeType_t compute;
  cudaDataType_t scale;
};
Types types_of(const char* op, ScalarType t) {
  switch (t) {
    case kFloat32:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case kFloat64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
    case kFloat16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case kBFloat16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case kComplexFloat:
      return {CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F};
    case kComplexDouble:
      return {CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F};
    default:
      dtype_not_implemented(op, t);
  }
}

// cuBLAS's descriptors, dropped at the end of the scope.
class MatrixLayout {
 public:
  // Rows and columns as cuBLAS counts them, that is those of the transposed matrix.
  MatrixLayout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t lead, int64_t batch,
               int64_t batch_stride) {
    check(cublas().cublasLtMatrixLayoutCreate(&value_, type, static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(columns), lead));
    const auto count = static_cast<int32_t>(batch);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
  }
  ~MatrixLayout() { (void)cublas().cublasLtMatrixLayoutDestroy(value_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  cublasLtMatrixLayout_t get() const { return value_; }

 private:
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t name, const T& x) {
    check(cublas().cublasLtMatrixLayoutSetAttribute(value_, name, &x, sizeof x));
  }
  cublasLtMatrixLayout_t value_ = nullptr;
};

class MatmulDescription {
 public:
  explicit MatmulDescription(const Types& types) {
    check(cublas().cublasLtMatmulDescCreate(&value_, types.compute, types.scale));
  }
  ~MatmulDescription() { (void)cublas().cublasLtMatmulDescDestroy(value_); }
  MatmulDescription(const MatmulDescription&) = delete;
  MatmulDescription& operator=(const MatmulDescription&) = delete;
  template <class T>
  void set(cublasLtMatmulDescAttributes_t name, const T& x) {
    check(cublas().cublasLtMatmulDescSetAttribute(value_, name, &x, sizeof x));
  }
  cublasLtMatmulDesc_t get() const { return value_; }

 private:
  cublasLtMatmulDesc_t value_ = nullptr;
};

// What the choice of an algorithm depends on.
using Key = std::array<int64_t, 17>;

struct Choice {
  cublasLtMatmulAlgo_t algorithm;
  bool found;
};

Choice choose(const Key& key, cublasLtHandle_t handle, const MatmulDescription& description,
              const MatrixLayout& a, const MatrixLayout& b, const MatrixLayout& c,
              uint32_t alignment) {
  static std::mutex mutex;
  static auto* known = new std::map<Key, Choice>();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto at = known->find(key);
    if (at != known->end()) {
      return at->second;
    }
  }
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublas().cublasLtMatmulPreferenceCreate(&preference));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& x) {
    (void)cublas().cublasLtMatmulPreferenceSetAttribute(preference, name, &x, sizeof x);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  const cublasStatus_t status =
      cublas().cublasLtMatmulAlgoGetHeuristic(handle, description.get(), a.get(), b.get(), c.get(),
                                              c.get(), preference, 1, &result, &count);
  (void)cublas().cublasLtMatmulPreferenceDestroy(preference);
  const Choice choice{result.algo, status == CUBLAS_STATUS_SUCCESS && count > 0};
  const std::lock_guard<std::mutex> lock(mutex);
  known->emplace(key, choice);
  return choice;
}

uint32_t alignment_of(std::initializer_list<const void*> pointers) {
  uintptr_t bits = 256;
  for (const void* p : pointers) {
    bits |= reinterpret_cast<uintptr_t>(p);
  }
  return static_cast<uint32_t>(bits & (~bits + 1));
}

// [rows, columns] or [batch, rows, columns] with a batch in front.
Tensor with_batch_dim(const Tensor& t) {
  return t.dim() == 3 ? t
                      : make_view(t, {{1, t.sizes()[0], t.sizes()[1]},
                                      {0, t.strides()[0], t.strides()[1]},
                                      t.storage_offset()});
}
// A vector as a matrix of one column, a number as a matrix of one element.
Tensor column(const Tensor& t) {
  const int64_t n = t.dim() == 0 ? 1 : t.sizes()[0];
  const int64_t stride = t.dim() == 0 ? 1 : t.strides()[0];
  return make_view(t, {{n, 1}, {stride, 1}, t.storage_offset()});
}

}  // namespace

bool multiply(const char* op, const Tensor& out, const Tensor& left, const Tensor& right,
              const Scalar& beta, const Scalar& alpha, const Tensor& bias) {
  const Tensor a = with_batch_dim(left);
  const Tensor b = with_batch_dim(right);
  const Tensor c = with_batch_dim(out);
  if (is_integral(left.dtype())) {
    multiply_integers(op, c, a, b, beta, alpha);
    return true;
  }
  const int64_t batch = c.sizes()[0];
  const int64_t rows = c.sizes()[1];
  const int64_t columns = c.sizes()[2];
  const int64_t depth = a.sizes()[2];
  const Types types = types_of(op, left.dtype());
  const cudaDataType_t result_type = types_of(op, out.dtype()).data;
  if (out.numel() == 0) {
    return true;
  }
  if (depth == 0) {
    if (beta.equal(0)) {
      fill_raw(out, 0);
    } else if (!beta.equal(1)) {
      const Tensor factor = make_number(beta);
      const NoGradGuard no_grad;
      out.mul_(factor);
    }
    if (bias.defined()) {
      copy_raw(out, bias);
    }
    return true;
  }
  const Operand x = operand(a);
  const Operand y = operand(b);
  Operand z;
  if (!fits(c, z) || z.transposed) {  // the result goes through a dense copy
    const Tensor dense = make_empty(c.sizes(), c.dtype(), c.device());
    if (!beta.equal(0)) {
      copy_raw(dense, c);
    }
    if (!multiply(op, dense, a, b, beta, alpha, bias)) {
      return false;
    }
    copy_raw(c, dense);
    return true;
  }
  const Launch launch(out.device());
  const cublasLtHandle_t handle = cublas_handle(out.device().index());
  // As cuBLAS sees it: C' (columns x rows) = B' (columns x depth) A' (depth x rows).
  const auto layout = [&](const Operand& m, cudaDataType_t type) {
    const IntArrayRef n = m.tensor.sizes();
    return m.transposed ? MatrixLayout(type, n[1], n[2], m.lead, batch, m.batch_stride)
                        : MatrixLayout(type, n[2], n[1], m.lead, batch, m.batch_stride);
  };
  MatmulDescription description(types);
  description.set(CUBLASLT_MATMUL_DESC_TRANSA, y.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  description.set(CUBLASLT_MATMUL_DESC_TRANSB, x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (bias.defined()) {
    const void* const p = bias.data_ptr();
    description.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    description.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p);
  }
  const MatrixLayout first = layout(y, types.data);
  const MatrixLayout second = layout(x, types.data);
  const MatrixLayout result = layout(z, result_type);
  const uint32_t alignment =
      alignment_of({x.tensor.data_ptr(), y.tensor.data_ptr(), z.tensor.data_ptr(),
                    bias.defined() ? bias.data_ptr() : nullptr});
  const Key key = {static_cast<int64_t>(left.scalar_type()),
                   static_cast<int64_t>(out.scalar_type()),
                   out.device().index(),
                   batch,
                   rows,
                   columns,
                   depth,
                   x.lead,
                   y.lead,
                   z.lead,
                   x.batch_stride,
                   y.batch_stride,
                   z.batch_stride,
                   x.transposed,
                   y.transposed,
                   bias.defined(),
                   alignment};
  const Choice choice = choose(key, handle, description, first, second, result, alignment);
  if (!choice.found) {
    RL_CHECK(bias.defined(), op, ": cuBLASLt has no algorithm for ", out.dtype(), " matrices of ",
             rows, "x", depth, " and ", depth, "x", columns);
    return false;
  }
  alignas(16) char factors[2][16];
  const ScalarType scale =
      left.dtype() == kFloat16 || left.dtype() == kBFloat16 ? kFloat32 : left.dtype();
  store_scalar(factors[0], scale, alpha);
  store_scalar(factors[1], scale, beta);
  const Scratch workspace(workspace_bytes, out.device());
  check(cublas().cublasLtMatmul(
      handle, description.get(), factors[0], y.tensor.data_ptr(), first.get(), x.tensor.data_ptr(),
      second.get(), factors[1], z.tensor.data_ptr(), result.get(), z.tensor.data_ptr(),
      result.get(), &choice.algorithm, workspace.as<void>(), workspace_bytes, launch.stream()));
  return true;
}

namespace {

// Leading dimensions as one, where they lie at one stride; else a dense copy.
Tensor one_batch(const Tensor& t) {
  const size_t leading = t.sizes().size() - 2;
  int64_t size = 1;
  int64_t stride = 0;
  bool joins = true;
  for (size_t d = leading; d-- > 0;) {
    if (t.sizes()[d] == 1) {
      continue;
    }
    joins = joins && (size == 1 || t.strides()[d] == stride * size);
    stride = size == 1 ? t.strides()[d] : stride;
    size *= t.sizes()[d];
  }
  if (!joins) {
    return one_batch(contiguous_raw(t));
  }
  return make_view(t, {{size, t.sizes()[leading], t.sizes()[leading + 1]},
                       {stride, t.strides()[leading], t.strides()[leading + 1]},
                       t.storage_offset()});
}

}  // namespace

}  // namespace cuda

void cuda::mm(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  multiply("mm", out, self, mat2, 0, 1);
}
void cuda::_int_mm(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  const auto widen = [](const Tensor& t) {
    const Tensor wide = make_empty(t.sizes(), kInt32, t.device());
    copy_raw(wide, t);
    return wide;
  };
  multiply("_int_mm", out, widen(self), widen(mat2), 0, 1);
}
void cuda::bmm(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  multiply("bmm", out, self, mat2, 0, 1);
}
void cuda::_matmul(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor to = one_batch(out);
  multiply("matmul", to, one_batch(self), one_batch(mat2), 0, 1);
  if (to.storage() != out.storage()) {  // out does not lie as one batch
    copy_raw(out, make_view(to, {out.sizes(), contiguous_strides(out.sizes()), 0}));
  }
}
void cuda::mv(const Tensor& out, const Tensor& self, const Tensor& vec) {
  multiply("mv", column(out), self, column(vec), 0, 1);
}
void cuda::dot(const Tensor& out, const Tensor& self, const Tensor& tensor) {
  const Tensor row =
      make_view(self, {{1, self.numel()}, {1, self.strides()[0]}, self.storage_offset()});
  multiply("dot", column(out), row, column(tensor), 0, 1);
}
void cuda::addmm(const Tensor& out, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                 const Scalar& alpha) {
  multiply("addmm", out, mat1, mat2, beta, alpha);
}
void cuda::baddbmm(const Tensor& out, const Tensor& batch1, const Tensor& batch2,
                   const Scalar& beta, const Scalar& alpha) {
  multiply("baddbmm", out, batch1, batch2, beta, alpha);
}
void cuda::addmv(const Tensor& out, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                 const Scalar& alpha) {
  multiply("addmv", column(out), mat, column(vec), beta, alpha);
}

void cuda::linear(const Tensor& out, const Tensor& input, const Tensor& weight,
                  const Tensor& bias) {
  const int64_t features = input.sizes()[input.dim() - 1];
  const Tensor dense = input.dim() == 2 ? input : contiguous_raw(input);
  const int64_t rows =
      features == 0 ? out.numel() / std::max<int64_t>(weight.dim() == 2 ? weight.sizes()[0] : 1, 1)
                    : dense.numel() / features;
  const Tensor a =
      dense.dim() == 2
          ? dense
          : make_view(dense, {{rows, features}, {features, 1}, dense.storage_offset()});
  const IntArrayRef w = weight.strides();
  const int64_t width = weight.dim() == 2 ? weight.sizes()[0] : 1;
  const Tensor b =
      make_view(weight, {{features, width},
                         {weight.dim() == 2 ? w[1] : w[0], weight.dim() == 2 ? w[0] : 1},
                         weight.storage_offset()});
  const bool whole = out.is_contiguous();
  const Tensor result = whole ? out : make_empty(out.sizes(), out.dtype(), out.device());
  const Tensor c = make_view(result, {{rows, width}, {width, 1}, result.storage_offset()});
  const bool fused =
      bias.defined() && bias.dim() == 1 && bias.is_contiguous() &&
      (out.dtype() == kFloat32 || out.dtype() == kFloat16 || out.dtype() == kBFloat16);
  if (!fused || !multiply("linear", c, a, b, 0, 1, bias)) {
    if (bias.defined()) {
      copy_raw(result, bias);
    }
    multiply("linear", c, a, b, bias.defined() ? 1 : 0, 1);
  }
  if (!whole) {
    copy_raw(out, result);
  }
}

}  // namespace rushlight
