// What ops on pictures of bytes take: (H, W, 1) or (H, W, 4), as Pillow keeps them.
#pragma once

#include "core/op_support.h"

namespace rushlight {

inline void check_picture(const char* op, const Tensor& t) {
  RL_CHECK(t.dim() == 3 && (t.size(2) == 1 || t.size(2) == 4), op,
           ": a picture is (H, W, 1) or (H, W, 4), got sizes ", t.sizes());
  if (t.dtype() != kUInt8) {
    dtype_not_implemented(op, t.dtype());
  }
}

// With the pixels of a row side by side: a part of a picture is read where it lies.
inline Tensor with_contiguous_rows(const Tensor& t) {
  const bool whole = (t.size(2) == 1 || t.stride(2) == 1) &&
                     (t.size(1) == 1 || t.stride(1) == t.size(2)) && t.stride(0) >= 0;
  return whole ? t : contiguous_raw(t);
}

}  // namespace rushlight
