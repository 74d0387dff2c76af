// The geometry of a reduction: which elements of the input are reduced to which output, with
// dimensions merged.
#pragma once

#include <rushlight/optional_int_array_ref.h>
#include <rushlight/tensor.h>

#include "cpu/dims.h"

namespace rushlight::cpu {

// Rows of at most this many elements and bytes are turned on their side: a vector holds parts of
// many.
inline constexpr int64_t short_row = 32;
inline constexpr int64_t short_row_bytes = 128;

struct ReducePlan {
  Dims kept;     // in the order of the outputs, which are contiguous
  Dims reduced;  // by stride, smallest first, or in the input's order
  int64_t outputs = 1;
  int64_t count = 1;  // elements per output
  bool columns =
      false;  // reduce many outputs side by side: they are the faster dimension in memory,
  bool turned = false;  // or short rows that lie along memory, which are turned on their side
};

// `dims` are wrapped; nothing means all. `ordered`: elements are visited in the order of the
// input's indices, which matters to whoever reports positions.
ReducePlan plan_reduction(const Tensor& self, OptionalIntArrayRef dims, bool ordered);

}  // namespace rushlight::cpu
