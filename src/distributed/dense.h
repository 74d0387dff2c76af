// Tensors as engines see them: dense pieces of memory.
#pragma once

#include "core/op_support.h"
#include <rushlight/distributed/backend.h>

namespace rushlight::distributed {

inline int64_t bytes_of(const Tensor& t) {
  return t.numel() * static_cast<int64_t>(itemsize(t.dtype()));
}

// A dense piece of memory for a tensor: its own where that is dense.
inline Tensor dense(const Tensor& t) {
  if (t.is_contiguous()) {
    return t;
  }
  const Tensor copy = make_empty(t.sizes(), t.dtype(), t.device());
  copy_raw(copy, t);
  return copy;
}
inline Tensor dense_output(const Tensor& t) {
  return t.is_contiguous() ? t : make_empty(t.sizes(), t.dtype(), t.device());
}
inline void write_back(const Tensor& to, const Tensor& from) {
  if (!to.is_contiguous()) {
    copy_raw(to, from);
  }
}

inline char* memory(const Tensor& t) { return t.impl()->data(); }

}  // namespace rushlight::distributed
