// The stacks of levels, and what special tensors bring.
#include <rushlight/mode.h>

#include <algorithm>

#include "core/op_support.h"

namespace rushlight {

Mode::~Mode() = default;
SpecialTensor::~SpecialTensor() = default;

ModeScope::ModeScope(Mode& mode, Level level)
    : slot_(level == Level::Upper ? &tls.upper : &tls.lower) {
  before_ = *slot_;
  mode.below = before_;
  *slot_ = &mode;
}

ModeScope::~ModeScope() { *slot_ = before_; }

namespace {
// Pops a mode while its handler runs.
class Popped {
 public:
  explicit Popped(Mode*& slot) : slot_(slot), mode_(slot) { slot_ = mode_->below; }
  ~Popped() { slot_ = mode_; }
  Popped(const Popped&) = delete;
  Popped& operator=(const Popped&) = delete;
  Mode& mode() const { return *mode_; }

 private:
  Mode*& slot_;
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
std::vector<Value> hand_over(Handler& handler, const OpFunction& function,
                             std::vector<Value> arguments) {
  const bool requires_grad = take_requires_grad(arguments);
  const OpInfo& op = overload_of(function, arguments);
  std::vector<Value> results = handler.handle(op, arguments_of(op, std::move(arguments)));
  if (requires_grad && !results.empty()) {
    results[0] = Value(as_leaf(results[0].get<Tensor>(), true));
  }
  return results;
}

// The special tensor that is asked: of the highest level, the first among equals.
SpecialTensor* asked_of(const std::vector<Value>& arguments) {
  SpecialTensor* found = nullptr;
  for (const Value& v : arguments) {
    v.for_each_tensor([&](const Tensor& t) {
      if (is_special(t) && (found == nullptr || t.impl()->special()->level() > found->level())) {
        found = t.impl()->special();
      }
    });
  }
  return found;
}

}  // namespace

std::vector<Value> Mode::take(const OpFunction& function, std::vector<Value> arguments) {
  return hand_over(*this, function, std::move(arguments));
}
std::vector<Value> SpecialTensor::take(const OpFunction& function, std::vector<Value> arguments) {
  return hand_over(*this, function, std::move(arguments));
}

std::vector<Value> dispatch_upper(const OpFunction& function, std::vector<Value> arguments) {
  const Popped popped(tls.upper);
  return popped.mode().take(function, std::move(arguments));
}

std::vector<Value> dispatch_lower(const OpFunction& function, std::vector<Value> arguments) {
  const NoGradGuard no_grad;  // below autograd: the caller records
  if (tls.lower != nullptr) {
    const Popped popped(tls.lower);
    return popped.mode().take(function, std::move(arguments));
  }
  SpecialTensor* const special = asked_of(arguments);
  RL_CHECK(special != nullptr, "no level and no special tensor handles this call");
  return special->take(function, std::move(arguments));
}

}  // namespace rushlight
