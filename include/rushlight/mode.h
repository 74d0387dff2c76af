// Modes: objects on per-thread stacks that see op calls in boxed form before they run. While the
// handler of one runs it is popped, so the ops that it calls itself go to the mode below.
#pragma once

#include <rushlight/schema.h>
#include <rushlight/thread_state.h>

namespace rushlight {

struct RL_API Mode {
  virtual ~Mode();
  // Handles one call; the default way is `return call(op, arguments);`.
  virtual std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) = 0;
  // The same for a call of a function; usually the overload that fits it is looked for.
  virtual std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments);
  Mode* below = nullptr;
};

// Puts a mode on the upper or lower stack of this thread for a scope.
class RL_API ModeScope {
 public:
  enum class Level { Upper, Lower };
  ModeScope(Mode& mode, Level level);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  Mode* before_;
  Level level_;
};

// What a special tensor brings (TensorImpl::special): who runs the ops that it takes part in, below
// autograd and below the modes, and who answers for memory that it does not have.
struct RL_API SpecialTensor {
  virtual ~SpecialTensor();
  // Of the special tensors among the arguments the first of those of the highest level is asked.
  virtual std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) = 0;
  // The same for a call of a function; usually the overload that fits it is looked for.
  virtual std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments);
  // Of a tensor that vmap goes through the innermost such vmap (batching.h); 0 for all others.
  virtual int64_t level() const { return 0; }
  // A tensor on the same memory, outside the graph.
  virtual Tensor alias(const Tensor& self) const;
  // Called where the memory of the tensor is wanted: returns, or raises.
  virtual void check_has_memory() const {}
};

// Generated code calls these where a mode or a special tensor is there; arguments are those of the
// function. The lower one runs without recording.
RL_API std::vector<Value> dispatch_upper(const OpFunction& function, std::vector<Value> arguments);
RL_API std::vector<Value> dispatch_lower(const OpFunction& function, std::vector<Value> arguments);

// Within it special tensors are taken as what they are made of: their handlers do not run.
class RL_API WithoutSpecial {
 public:
  WithoutSpecial() : before_(tls.see_special) { tls.see_special = false; }
  ~WithoutSpecial() { tls.see_special = before_; }
  WithoutSpecial(const WithoutSpecial&) = delete;
  WithoutSpecial& operator=(const WithoutSpecial&) = delete;

 private:
  bool before_;
};

}  // namespace rushlight
