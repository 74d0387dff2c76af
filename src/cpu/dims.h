// A window on memory, for kernels: sizes and strides with neighbouring dimensions merged, and the
// walk over them. Always inlined, so that no instruction set's copy is linked into another's code.
#pragma once

#include <algorithm>
#include <cstdint>

#include <rushlight/tensor.h>

#include "core/times.h"

#define RL_ALWAYS_INLINE inline __attribute__((always_inline))

namespace rushlight::cpu {

// Bytes from one element of a dimension to the next. Tensors without elements have any strides.
RL_ALWAYS_INLINE int64_t byte_stride(const Tensor& t, int64_t d) {
  return times(t.strides()[d], t.element_size());
}

// Dimensions innermost first; strides in bytes of the input.
struct Dims {
  static constexpr int max = 64;
  int n = 0;
  int64_t size[max];
  int64_t stride[max];

  // Appends an outer dimension, merging it with the one before where memory allows.
  RL_ALWAYS_INLINE void add(int64_t length, int64_t step) {
    if (length == 1) {
      return;
    }
    if (n > 0 && step == times(stride[n - 1], size[n - 1])) {
      size[n - 1] = times(size[n - 1], length);
      return;
    }
    size[n] = length;
    stride[n] = step;
    n++;
  }
  RL_ALWAYS_INLINE int64_t numel() const {
    int64_t product = 1;
    for (int d = 0; d < n; d++) {
      product = times(product, size[d]);
    }
    return product;
  }
  RL_ALWAYS_INLINE int64_t offset(int64_t index) const {
    int64_t at = 0;
    for (int d = 0; d < n; d++) {
      at += index % size[d] * stride[d];
      index /= size[d];
    }
    return at;
  }
};

// Walks a merged geometry in order, from any start.
class Walk {
 public:
  RL_ALWAYS_INLINE explicit Walk(const Dims& dims, int64_t start = 0) : dims_(dims) {
    for (int d = 0; d < dims.n; d++) {
      index_[d] = start % dims.size[d];
      start /= dims.size[d];
      offset_ += index_[d] * dims.stride[d];
    }
  }
  RL_ALWAYS_INLINE int64_t offset() const { return offset_; }
  // Positions left in the innermost dimension.
  RL_ALWAYS_INLINE int64_t run() const { return dims_.n == 0 ? 1 : dims_.size[0] - index_[0]; }
  RL_ALWAYS_INLINE int64_t stride() const { return dims_.n == 0 ? 0 : dims_.stride[0]; }
  // Steps forward by at most run().
  RL_ALWAYS_INLINE void advance(int64_t n) {
    if (dims_.n == 0) {
      return;
    }
    index_[0] += n;
    offset_ += n * dims_.stride[0];
    for (int d = 0; index_[d] == dims_.size[d] && d + 1 < dims_.n; d++) {
      offset_ += dims_.stride[d + 1] - index_[d] * dims_.stride[d];
      index_[d] = 0;
      index_[d + 1]++;
    }
  }

 private:
  const Dims& dims_;
  int64_t index_[Dims::max];
  int64_t offset_ = 0;
};

// Calls f(position, offset, stride, n) for the runs of positions [begin, end).
template <class F>
void for_runs(const Dims& dims, int64_t begin, int64_t end, const F& f) {
  if (begin >= end) {  // a size may be 0, by which no position divides
    return;
  }
  Walk walk(dims, begin);
  while (begin < end) {
    const int64_t n = std::min(walk.run(), end - begin);
    f(begin, walk.offset(), walk.stride(), n);
    walk.advance(n);
    begin += n;
  }
}

}  // namespace rushlight::cpu
