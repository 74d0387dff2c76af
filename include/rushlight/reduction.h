// How the losses of elements become one: the numbers that losses take.
#pragma once

#include <cstdint>

namespace rushlight::Reduction {

enum Reduction : int64_t { None, Mean, Sum };

}  // namespace rushlight::Reduction
