// What the contracts of several families ask and say.
#pragma once

#include <rushlight/reduction.h>

#include "core/op_support.h"

namespace rushlight {

// What sums over elements of a type, and statistics of them, are kept in.
inline ScalarType accumulation_dtype(ScalarType t) { return t == kFloat64 ? kFloat64 : kFloat32; }
inline ScalarType accumulation_dtype(const Tensor& t) { return accumulation_dtype(t.dtype()); }

// "not implemented for 'Long'" unless the dtype is floating.
inline void check_floating(const char* op, const Tensor& t, bool complex_too = false) {
  if (!is_floating(t.dtype()) && !(complex_too && is_complex(t.dtype()))) {
    dtype_not_implemented(op, t.dtype());
  }
}

// One class for each sample, or of the one sample.
inline void check_one_target(const char* op, const Tensor& target) {
  RL_CHECK(target.dim() <= 1, op, ": 0D or 1D target tensor expected, but it has ", target.dim(),
           " dimensions (multi-target not supported)");
}

inline void check_reduction(int64_t reduction) {
  RL_CHECK_VALUE(reduction >= Reduction::None && reduction <= Reduction::Sum, reduction,
                 " is not a valid value for reduction");
}
inline Tensor reduce_losses(const Tensor& losses, int64_t reduction) {
  check_reduction(reduction);
  return reduction == Reduction::Mean  ? losses.mean()
         : reduction == Reduction::Sum ? losses.sum()
                                       : losses;
}

}  // namespace rushlight
