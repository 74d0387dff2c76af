// What several files refuse for the sake of gradients, each message in one place. RuntimeError.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// A leaf that requires grad, or a view of one, that is (or has been) written in place.
[[noreturn]] RL_API void refuse_leaf_write(bool is_view, const char* when = "is being used");
// A tensor that mark_dirty was given and forward did not return.
[[noreturn]] RL_API void refuse_unreturned_dirty();
[[noreturn]] RL_API void refuse_second_hooks();
// The gradient of input `i` of grad(), which is undefined where no output depends on it.
RL_API void check_used(const Tensor& grad, size_t i);

}  // namespace rushlight
