// Which elements of a mask are true, as places to write to.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::cuda {

// For each element of a contiguous mask how many are true before it, and the total.
struct Places {
  Tensor before;  // int64, one more than the mask has
  int64_t total = 0;
};
// The host waits for the total.
Places places_of(const Tensor& mask);

}  // namespace rushlight::cuda
