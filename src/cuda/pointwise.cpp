// From a TensorIterator to launches of a formula's kernels.
#include "cuda/pointwise.h"

#include "core/op_support.h"
#include "cuda/runtime.h"

namespace rushlight::cuda {

namespace {

Scalar number_at(const char* p, ScalarType t) {
  return visit_dtype<set_stored>("load", t, [&](auto tag) {
    return Scalar(*reinterpret_cast<const typename decltype(tag)::type*>(p));
  });
}

// All operands lie without gaps, element by element, in the dtypes that the contiguous kernel has.
bool is_plain(const PointwiseWork& work, ScalarType common, ScalarType result) {
  if (work.ndim != 1 || work.dtype[0] != result) {
    return false;
  }
  for (int i = 0; i < work.operands; i++) {
    if (work.data[i] == nullptr) {
      continue;
    }
    const bool in_place = work.one[i] ? i > 0 : work.strides[i][0] == itemsize(work.dtype[i]);
    const bool aligned = work.one[i] || reinterpret_cast<uintptr_t>(work.data[i]) % 16 == 0;
    if (!in_place || !aligned || (i > 0 && work.dtype[i] != common)) {
      return false;
    }
  }
  return true;
}

ScalarType result_dtype(Promote promote, ScalarType common) {
  return promote == Promote::Bool ? kBool : promote == Promote::Real ? to_real(common) : common;
}

}  // namespace

PointwiseWork describe(const TensorIterator& it) {
  PointwiseWork work;
  work.numel = it.numel();
  work.operands = it.num_operands();
  work.ndim = it.dim();
  for (int d = 0; d < work.ndim; d++) {
    work.shape[d] = it.shape()[d];
  }
  for (int i = 0; i < work.operands; i++) {
    work.data[i] = it.data(i);
    work.dtype[i] = it.dtype(i);
    for (int d = 0; d < work.ndim; d++) {
      work.strides[i][d] = it.strides(i)[d];
    }
    if (i > 0 && it.is_scalar(i)) {
      work.one[i] = true;
      if (it.is_on_host(i)) {
        work.numbers[i - 1] = number_at(it.data(i), it.dtype(i));
        work.data[i] = nullptr;
      }
    }
  }
  return work;
}

void run_pointwise(const TensorIterator& it, const PointwiseKernel& kernel,
                   const Scalar* attributes) {
  if (it.numel() == 0) {
    return;
  }
  const int common = static_cast<int>(it.common_dtype());
  if (kernel.strided[common] == nullptr) {
    dtype_not_implemented(it.op(), it.common_dtype());
  }
  PointwiseWork work = describe(it);
  work.operands = kernel.inputs + 1;  // a formula may leave the last inputs out
  work.attributes = attributes;
  const ScalarType result = result_dtype(kernel.promote, it.common_dtype());
  const Launch launch(it.device());
  for_each_part(work, [&](const PointwiseWork& part) {
    const bool plain = is_plain(part, it.common_dtype(), result);
    (plain ? kernel.contiguous : kernel.strided)[common](part, launch.stream());
  });
  launch.done();
}

}  // namespace rushlight::cuda
