// Products of sizes and strides that may overflow. Tensors without elements or memory may have
// sizes and strides of any magnitude; what overflows there wraps, and is refused where a view is
// made or never used.
#pragma once

#include <cstdint>
#include <tuple>

namespace rushlight {

inline __attribute__((always_inline)) int64_t times(int64_t steps, int64_t stride) {
  int64_t distance = 0;
  std::ignore = __builtin_mul_overflow(steps, stride, &distance);
  return distance;
}

}  // namespace rushlight
