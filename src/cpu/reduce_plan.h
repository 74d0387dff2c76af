// The geometry of a reduction: which elements of the input are reduced to which output, with
// dimensions merged.
#pragma once

#include <rushlight/optional_int_array_ref.h>
#include <rushlight/tensor.h>

#include "cpu/dims.h"

namespace rushlight::cpu {

struct ReducePlan {
  Dims kept;     // in the order of the outputs, which are contiguous
  Dims reduced;  // by stride, smallest first, or in the input's order
  int64_t outputs = 1;
  int64_t count = 1;      // elements per output
  bool columns = false;   // outputs are the faster dimension in memory: reduce many side by side
  bool rows_lie = false;  // many outputs, each of elements that lie side by side
};

// `dims` are wrapped; nothing means all. `ordered`: elements are visited in the order of the
// input's indices, which matters to whoever reports positions.
ReducePlan plan_reduction(const Tensor& self, OptionalIntArrayRef dims, bool ordered);

}  // namespace rushlight::cpu
