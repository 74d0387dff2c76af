// Which step of a chain a tensor is.
#pragma once

#include <algorithm>

#include <rushlight/tensor.h>

#include "cpu/program_builder.h"

namespace rushlight::cpu {

// Whether elements of t lie as those of a chain's results do.
inline bool lies_as(const Chain& chain, const Tensor& t) {
  if (t.dim() != chain.dim) {
    return false;
  }
  for (int64_t d = 0; d < chain.dim; d++) {
    if (t.sizes()[d] != chain.sizes[d] ||
        (t.strides()[d] != chain.strides[d] && t.sizes()[d] > 1)) {
      return false;
    }
  }
  return true;
}
inline int64_t bytes_before(const Tensor& t) { return t.storage_offset() * itemsize(t.dtype()); }
// Whether t has an element for each row of a chain and is spread over the rows by broadcasting.
inline bool lies_as_rows(const Chain& chain, const Tensor& t) {
  if (t.dim() != chain.dim || !t.is_contiguous()) {
    return false;
  }
  int64_t row = 1;
  for (int64_t d = chain.dim - 1; d >= 0; d--) {
    const bool within = row < chain.row;
    if (t.sizes()[d] != (within ? 1 : chain.sizes[d])) {
      return false;
    }
    row *= within ? chain.sizes[d] : 1;
  }
  return true;
}
// The step that gives what is in the memory of `t`; -1 where there is none, or `t` is only a part
// of it.
inline int step_with(const Chain& chain, const Tensor& t) {
  for (size_t i = chain.steps.size(); i-- > 0;) {
    const cpu::Step& step = chain.steps[i];
    if (step.result == t.storage().get()) {
      return step.offset == bytes_before(t) && step.stored == t.dtype() ? static_cast<int>(i) : -1;
    }
  }
  return -1;
}
// The step whose value `t` is, for a step over all elements; -1 where it is no chain's, or only a
// part or another view of one.
inline int step_of(const Chain& chain, const Tensor& t) {
  const int step = step_with(chain, t);
  if (step < 0) {
    return -1;
  }
  const bool lies =
      chain.steps[static_cast<size_t>(step)].on_rows ? lies_as_rows(chain, t) : lies_as(chain, t);
  return lies ? step : -1;
}
// The same for a step over the elements of rows.
inline int row_step_of(const Chain& chain, const Tensor& t) {
  const int step = chain.row == 0 ? -1 : step_with(chain, t);
  return step >= 0 && chain.steps[static_cast<size_t>(step)].on_rows && t.is_contiguous() &&
                 t.numel() == chain.rows()
             ? step
             : -1;
}
// Nobody can see any more what was noted for this memory.
inline void forget_result(Chain& chain, const StorageImpl* storage) {
  for (cpu::Step& step : chain.steps) {
    if (step.result == storage) {
      step.result = nullptr;
    }
  }
}
inline bool reads(const Chain& chain, const StorageImpl* storage) {
  return std::any_of(chain.leaves.begin(), chain.leaves.end(),
                     [&](const cpu::Leaf& leaf) { return leaf.storage.get() == storage; });
}

}  // namespace rushlight::cpu
