// Indices that are checked on the device: one that is out of bounds stops the kernel by an
// assertion, before anything beyond the tensor is touched.
#pragma once

#undef NDEBUG
#include <cassert>
#include <cstdint>

namespace rushlight::cuda {

__device__ __forceinline__ int64_t checked_index(int64_t index, int64_t size) {
  assert(index >= 0 && index < size && "index out of bounds");
  return index;
}

}  // namespace rushlight::cuda
