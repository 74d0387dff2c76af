// The norms that distances are computed by, for all devices.
#pragma once

#include <cmath>

#include "kernels/math.h"

namespace rushlight {

enum class Norm { Zero, One, Two, Infinite, Any };

RL_INLINE Norm norm_of(double p) {
  return p == 0          ? Norm::Zero
         : p == 1        ? Norm::One
         : p == 2        ? Norm::Two
         : std::isinf(p) ? Norm::Infinite
                         : Norm::Any;
}

}  // namespace rushlight
