// Pointwise work as the host prepares it: what the iterator found, in a form that any formula's
// launcher takes.
#pragma once

#include <cuda_runtime_api.h>

#include <rushlight/scalar.h>

#include "core/iterator.h"
#include "cuda/offset.h"

namespace rushlight::cuda {

inline constexpr int max_inputs = 4;
inline constexpr int max_operands = max_inputs + 1;

// One launch: at most 2^31 - 1 elements in at most Walk::max_dims dimensions. Operand 0 is the
// output.
struct PointwiseWork {
  int64_t numel = 0;
  int operands = 0;
  char* data[max_operands] = {};  // null for a number, which stands in `numbers`
  ScalarType dtype[max_operands] = {};
  bool one[max_operands] = {};  // one element for all
  Scalar numbers[max_inputs];
  const Scalar* attributes = nullptr;
  int ndim = 0;
  int64_t shape[TensorIterator::max_dims];  // innermost first
  int64_t strides[max_operands][TensorIterator::max_dims];
};

using PointwiseLaunch = void (*)(const PointwiseWork& work, cudaStream_t stream);

struct PointwiseKernel {
  int inputs;
  Promote promote;
  PointwiseLaunch contiguous[dtype_rows];  // by common dtype; null where there is no kernel for it
  PointwiseLaunch strided[dtype_rows];
};

template <int N>
Walk<N> walk_of(const PointwiseWork& work) {
  Walk<N> walk;
  walk.ndim = work.ndim;
  for (int d = 0; d < work.ndim; d++) {
    walk.sizes[d] = Divider(static_cast<uint32_t>(work.shape[d]));
    for (int i = 0; i < N; i++) {
      walk.strides[d][i] = work.strides[i][d];
    }
  }
  return walk;
}

// Describes a built iterator. Operands that lie on the host (numbers, 0-d CPU tensors) become
// numbers.
PointwiseWork describe(const TensorIterator& it);

// Calls f(part) for pieces that one launch can do, cut from the outermost dimension inwards.
template <class F>
void for_each_part(const PointwiseWork& work, const F& f) {
  if (work.numel <= 2147483647 && work.ndim <= Walk<1>::max_dims) {
    f(work);
    return;
  }
  const int last = work.ndim - 1;
  // Too many dimensions: one index at a time; too many elements: halves.
  const int64_t step = work.ndim > Walk<1>::max_dims ? 1 : (work.shape[last] + 1) / 2;
  for (int64_t at = 0; at < work.shape[last]; at += step) {
    PointwiseWork part = work;
    part.shape[last] = step < work.shape[last] - at ? step : work.shape[last] - at;
    part.numel = work.numel / work.shape[last] * part.shape[last];
    for (int i = 0; i < work.operands; i++) {
      part.data[i] += part.data[i] != nullptr ? at * work.strides[i][last] : 0;
    }
    part.ndim -= part.shape[last] == 1 && last > 0 ? 1 : 0;
    for_each_part(part, f);
  }
}

// Runs the kernel of a formula over a built iterator with one output.
void run_pointwise(const TensorIterator& it, const PointwiseKernel& kernel,
                   const Scalar* attributes = nullptr);

}  // namespace rushlight::cuda
