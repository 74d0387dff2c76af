#include "autograd/refusals.h"

namespace rushlight {

void refuse_leaf_write(bool is_view, const char* when) {
  throw Error(str(is_view ? "a view of " : "", "a leaf Variable that requires grad ", when,
                  " in an in-place operation: its gradient would belong to other numbers. Write to "
                  "a clone() of it, or under no_grad()."));
}

void refuse_unreturned_dirty() {
  throw Error(
      "mark_dirty: Some elements marked as dirty are not among the outputs. Let forward return "
      "every input that it writes to.");
}

void refuse_second_hooks() {
  throw Error("register_hooks: the hooks of this saved tensor have already been set.");
}

void check_used(const Tensor& grad, size_t i) {
  RL_CHECK(grad.defined(), "The differentiated Tensor at index ", i,
           " appears to not have been used in the graph: no output depends on it. "
           "allow_unused=True gives None for it.");
}

}  // namespace rushlight
