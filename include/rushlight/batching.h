// vmap: within a level tensors may have a batch dimension that ops do not see. Such a tensor is a
// special tensor (mode.h) with the sizes of a slice, made of a value with one dimension more, or of
// a tensor of a lower level. It lives below autograd, which records ops on slices; entering and
// leaving a level are differentiable.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::batching {

// What ops that draw random numbers do in a level.
enum class Randomness : uint8_t { Error, Same, Different };

// Enters and leaves a level on this thread; levels nest. Their numbers grow and are never used
// again.
RL_API int64_t enter(int64_t batch, Randomness randomness);
RL_API void leave(int64_t level);

// `t` with dimension `dim` as the batch of a level.
RL_API Tensor add_batch(const Tensor& t, int64_t dim, int64_t level);
// The batch of a level as dimension `dim` of the result; what has none is repeated.
RL_API Tensor remove_batch(const Tensor& t, int64_t level, int64_t batch, int64_t dim);
RL_API bool has_batch(const Tensor& t, int64_t level);

// The innermost level that a tensor has a batch of (0: none), and how many are entered up to it.
RL_API int64_t level_of(const Tensor& t);
RL_API int64_t depth_of(int64_t level);
RL_API int64_t current_level();  // the innermost level of this thread, 0 outside of all
// The values of all slices, for checks of values; a tensor outside of levels itself.
RL_API Tensor all_of(const Tensor& t);
// Whether ops without a rule go slice by slice (they raise otherwise), and whether they say so at
// each call instead of once.
struct Fallback {
  bool enabled = true;
  bool warns_always = false;
};
RL_API Fallback& fallback();

// RuntimeError where the truth of a tensor differs from slice to slice.
RL_API void refuse_control_flow(const Tensor& t);
// What a tensor of a level is made of, the batch in front.
RL_API const Tensor& value_of(const Tensor& t);

// What a gradient is worth to an input from outside of levels that the op was recorded in: all
// slices depend on that input, so their gradients are summed. The engine calls it with the sequence
// numbers of both nodes, which tell as levels are numbers of the same sequence; `leaf` is that
// input if it is a leaf, and `input` then the level that it was made within.
RL_API Tensor leave_levels(const Tensor& grad, uint64_t recorded, uint64_t input,
                           const Tensor& leaf);
// `t` becomes the tensor of a level that `from` is.
RL_API void take_value(const Tensor& t, const Tensor& from);

}  // namespace rushlight::batching
