// What several files refuse, each check with its message in one place.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

[[noreturn]] RL_API void refuse_devices(const char* op, Device a, Device b);
// RuntimeError unless the tensors of a call lie on one device.
inline void check_same_device(const char* op, Device a, Device b) {
  if (RL_UNLIKELY(a != b)) {
    refuse_devices(op, a, b);
  }
}
[[noreturn]] RL_API void refuse_number(int64_t elements);
// RuntimeError unless a tensor can be one number.
inline void check_one_element(const Tensor& t) {
  if (RL_UNLIKELY(t.numel() != 1)) {
    refuse_number(t.numel());
  }
}
// IndexError: a tensor of such a dtype, or an undefined one, is no index.
[[noreturn]] RL_API void refuse_index(const Tensor& index);
// The weights of bincount, which may be undefined: one for each number.
RL_API void check_bin_weights(const Tensor& numbers, const Tensor& weights);
// Whether a sparse tensor is contiguous: no COO tensor is, and of others RuntimeError.
RL_API bool sparse_is_contiguous(const Tensor& t);
// Warns, once, where values that are complex become real.
void warn_of_lost_parts(ScalarType from, ScalarType to);
// Slices without elements cannot be told apart, unless there are none of them.
RL_API void check_unique_slices(const char* op, int64_t slices, int64_t elements);

}  // namespace rushlight
