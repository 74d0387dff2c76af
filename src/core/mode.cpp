// The stacks of levels, and what special tensors bring.
#include <rushlight/mode.h>

#include <algorithm>

#include "core/op_support.h"
#include "core/sparse.h"

namespace rushlight {

Mode::~Mode() = default;
SpecialTensor::~SpecialTensor() = default;

namespace {
using Exchange = Mode* (ThreadState::*)(Mode*);
Exchange exchange_of(ModeScope::Level level) {
  return level == ModeScope::Level::Upper ? &ThreadState::exchange_upper
                                          : &ThreadState::exchange_lower;
}
}  // namespace

ModeScope::ModeScope(Mode& mode, Level level)
    : before_((tls.*exchange_of(level))(&mode)), level_(level) {
  mode.below = before_;
}

ModeScope::~ModeScope() { (tls.*exchange_of(level_))(before_); }

namespace {
// Pops the topmost mode while its handler runs.
template <Exchange exchange>
class PoppedMode {
 public:
  explicit PoppedMode(Mode* mode) : mode_(mode) { (tls.*exchange)(mode->below); }
  ~PoppedMode() { (tls.*exchange)(mode_); }
  PoppedMode(const PoppedMode&) = delete;
  PoppedMode& operator=(const PoppedMode&) = delete;
  Mode& mode() const { return *mode_; }

 private:
  Mode* mode_;
};

// That results of a factory want a gradient is no argument of an overload: it is taken out here and
// given back to what the handler returns.
bool take_requires_grad(std::vector<Value>& arguments) {
  bool taken = false;
  for (Value& v : arguments) {
    if (v.is<TensorOptions>() && v.get<TensorOptions>().requires_grad()) {
      v = Value(v.get<TensorOptions>().requires_grad(false));
      taken = true;
    }
  }
  return taken;
}

// Finds the overload of a call.
template <class Handler>
std::vector<Value> call_handler(Handler& handler, const OpFunction& function,
                                std::vector<Value> arguments) {
  const bool requires_grad = take_requires_grad(arguments);
  const OpInfo& op = overload_of(function, arguments);
  std::vector<Value> results = handler.handle(op, arguments_of(op, std::move(arguments)));
  if (requires_grad && !results.empty()) {
    results[0] = Value(as_leaf(results[0].get<Tensor>(), true));
  }
  return results;
}

// The special tensor that is asked: of the highest level, the first among equals, and a sparse one
// only beside no other.
SpecialTensor* class_tensor_in(const std::vector<Value>& arguments) {
  SpecialTensor* found = nullptr;
  int64_t highest = -2;
  for (const Value& v : arguments) {
    v.for_each_tensor([&](const Tensor& t) {
      const int64_t level = !is_special(t) ? -2 : is_sparse(t) ? -1 : t.impl()->special()->level();
      if (level > highest) {
        found = t.impl()->special();
        highest = level;
      }
    });
  }
  return found;
}

}  // namespace

std::vector<Value> Mode::take(const OpFunction& function, std::vector<Value> arguments) {
  return call_handler(*this, function, std::move(arguments));
}
std::vector<Value> SpecialTensor::take(const OpFunction& function, std::vector<Value> arguments) {
  return call_handler(*this, function, std::move(arguments));
}

std::vector<Value> dispatch_upper(const OpFunction& function, std::vector<Value> arguments) {
  const PoppedMode<&ThreadState::exchange_upper> popped(tls.upper());
  return popped.mode().take(function, std::move(arguments));
}

std::vector<Value> dispatch_lower(const OpFunction& function, std::vector<Value> arguments) {
  const NoGradGuard no_grad;  // below autograd: the caller records
  if (tls.lower() != nullptr) {
    const PoppedMode<&ThreadState::exchange_lower> popped(tls.lower());
    return popped.mode().take(function, std::move(arguments));
  }
  SpecialTensor* const special = class_tensor_in(arguments);
  RL_CHECK(special != nullptr, "no level and no special tensor handles this call");
  return special->take(function, std::move(arguments));
}

}  // namespace rushlight
