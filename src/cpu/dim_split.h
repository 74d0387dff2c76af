// A contiguous tensor as [outer][n][inner], the middle being the dimension that is worked along.
#pragma once

#include <rushlight/tensor.h>

#include "cpu/dims.h"

namespace rushlight::cpu {

struct DimSplit {
  int64_t outer = 1;
  int64_t n = 1;
  int64_t inner = 1;
};

RL_ALWAYS_INLINE DimSplit dim_split_of(const Tensor& t, int64_t dim) {
  DimSplit s;
  for (int64_t d = 0; d < t.dim(); d++) {
    (d < dim ? s.outer : d == dim ? s.n : s.inner) *= t.sizes()[d];
  }
  return s;
}

}  // namespace rushlight::cpu
