// CUB's running sums.
#pragma once

#include <host.h>

namespace cub {

struct DeviceScan {
  template <class In, class Out, class N>
  static cudaError_t InclusiveSum(void* room, size_t& bytes, In in, Out* out, N n, cudaStream_t) {
    if (room == nullptr) {
      bytes = 1;
      return cudaSuccess;
    }
    Out sum = 0;
    for (N i = 0; i < n; i++) {
      sum += in[i];
      out[i] = sum;
    }
    return cudaSuccess;
  }
};

}  // namespace cub
