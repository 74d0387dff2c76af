// Forward mode: tangents, which tensors carry along and ops carry on. A level is one
// differentiation that is under way; a tensor has at most one tangent of each. An op looks at the
// latest level that its arguments have tangents of, and computes value and tangent as if that level
// and those entered after it were not there (ThreadState::forward_limit), so that tangents have
// tangents of earlier levels themselves. When a level ends its tangents are gone.
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/schema.h>

namespace rushlight::forward {

// Whether any tensor may have a tangent: a level is open on some thread.
inline bool active() { return (process_asks.load(std::memory_order_relaxed) & ask::tangents) != 0; }

// Levels are numbered by their entry, from 1. RuntimeError for one that is not open.
RL_API uint64_t enter_level();
RL_API void exit_level(uint64_t level);

// The latest level that this thread sees and that `t` has a tangent of; 0 for none.
RL_API uint64_t level_of(const Tensor& t);
RL_API uint64_t level_of(TensorList list);
template <class... T>
bool has_tangent(const T&... arguments) {
  return ((level_of(arguments) != 0) || ...);
}
// Whether what is computed from these now may be differentiated: it is recorded, or a tangent is
// seen. Ops written over others then do without kernels that have no derivative.
template <class... T>
bool is_differentiated(const T&... arguments) {
  return (tls.grad_mode && ((arguments.defined() && arguments.requires_grad()) || ...)) ||
         (active() && has_tangent(arguments...));
}
// Runs a function that has a TangentRule on arguments of which some have tangents.
RL_API std::vector<Value> dispatch(const OpFunction& function, std::vector<Value> arguments);
// The tangent of a level; undefined where there is none.
RL_API Tensor tangent(const Tensor& t, uint64_t level);
// Gives a new tensor its tangent: in the dtype, size and strides of `t`.
RL_API void give_tangent(const Tensor& t, uint64_t level, const Tensor& tangent);
// The same after `t` was written: its views and what it is a view of see the new tangent too.
RL_API void write_tangent(const Tensor& t, uint64_t level, const Tensor& tangent);
// All tangents of a tensor for another one of the same geometry.
RL_API void copy_tangents(const Tensor& from, const Tensor& to);
// A copy of `t` with all its tangents, whatever this thread sees.
RL_API Tensor clone_with_tangents(const Tensor& t);
// The same memory, apart from the graph, with the tangents of `t`; and that as a leaf that wants a
// gradient, which is differentiated by these tangents.
RL_API Tensor data_of(const Tensor& t);
RL_API Tensor leaf_of(const Tensor& t);
// Gives `to`, made of `from` by an op that is linear and of no interest to levels, the tangents
// that `op` makes of those of `from`.
template <class Op>
void carry_tangents(const Tensor& from, const Tensor& to, const Op& op);
// After a result got its tangent: the node that made it may have saved it before.
RL_API void pass_tangent_to_node(const Tensor& result);

// A view of a tensor that has a tangent; RuntimeError where it has one of this level already, or
// where sizes or dtypes differ. And the way back: a view without it.
RL_API Tensor make_dual(const Tensor& primal, const Tensor& tangent, uint64_t level);
RL_API Tensor primal_of(const Tensor& dual, uint64_t level);

// Hides a level, and those entered after it, from this thread.
class RL_API Below {
 public:
  explicit Below(uint64_t level) : before_(tls.forward_limit) {
    tls.forward_limit = std::min(before_, level - 1);
  }
  ~Below() { tls.forward_limit = before_; }
  Below(const Below&) = delete;
  Below& operator=(const Below&) = delete;

 private:
  uint64_t before_;
};

template <class Op>
void carry_tangents(const Tensor& from, const Tensor& to, const Op& op) {
  for (uint64_t level = active() ? level_of(from) : 0; level != 0;) {
    const Below below(level);
    give_tangent(to, level, op(tangent(from, level)));
    level = level_of(from);
  }
}

}  // namespace rushlight::forward
