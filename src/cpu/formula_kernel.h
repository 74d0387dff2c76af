// What a formula is compiled to: blocks, one for each compute type, and what has to be known to
// call them. The same for all instruction sets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/iterator.h"

namespace rushlight::cpu {

// Computes `n` elements, a multiple of the granule. `attributes` are values of the compute type,
// one after another.
using Block = void (*)(char* out, const char* const* in, const void* attributes, int64_t n);

inline constexpr int max_inputs = 4;
inline constexpr int max_attributes = 4;

struct PointwiseKernel {
  const char* name;  // of the formula
  Promote promote;   // Rest: the first input of the block is bool
  int8_t num_inputs;
  int8_t num_attributes;
  bool moves;                // elements are only moved: 16-bit floats are not widened
  Block blocks[dtype_rows];  // by common dtype; null where the op has no kernel for it
  // Of two float32 inputs, where the first or the second is one number for all elements; or null:
  // only formulas that round once have it, whose bits cannot depend on what the compiler takes out
  // of the loop.
  Block with_number[2];

  // What the block reads (its input i) and writes.
  ScalarType compute(ScalarType common) const { return moves ? common : compute_dtype(common); }
  ScalarType wanted(int i, ScalarType common) const {
    return i == 0 && promote == Promote::Rest ? kBool : compute(common);
  }
  ScalarType result(ScalarType common) const {
    return promote == Promote::Bool   ? kBool
           : promote == Promote::Real ? to_real(compute(common))
                                      : compute(common);
  }
};

// Elements that a block works on at a time: 64 bytes of the smaller type, so that no vector is ever
// partial.
constexpr int64_t granule_of(int64_t compute_size, int64_t out_size) {
  return 64 / std::min(compute_size, out_size);
}

// Bytes of a result that is written past the caches: about a last-level cache.
inline constexpr int64_t stream_threshold = int64_t{32} << 20;

}  // namespace rushlight::cpu
