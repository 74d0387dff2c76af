// Tables that the host makes for kernels.
#pragma once

#include <cstring>
#include <vector>

#include "core/op_support.h"

namespace rushlight::cuda {

// A table of the host's in the memory of a device.
template <class T>
Tensor on_gpu(const std::vector<T>& table, Device device) {
  const auto n = static_cast<int64_t>(table.size());
  const Tensor here = make_empty({n}, dtype_of_v<T>, kCPU);
  std::memcpy(here.data_ptr(), table.data(), table.size() * sizeof(T));
  const Tensor there = make_empty({n}, dtype_of_v<T>, device);
  copy_raw(there, here);
  return there;
}

}  // namespace rushlight::cuda
