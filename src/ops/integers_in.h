// Tensors whose values decide what a composite does.
#pragma once

#include "core/op_support.h"

namespace rushlight {

// The values of an int64 or int32 tensor in their order. Those of a special tensor are asked for by
// item(), so that it can say that it has none.
DimVector integers_in(const Tensor& t);

}  // namespace rushlight
