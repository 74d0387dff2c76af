// The stacks of modes and the registry behind the boxed form.
#include <rushlight/mode.h>

#include <algorithm>
#include <cstring>

namespace rushlight {

Mode::~Mode() = default;

ModeScope::ModeScope(Mode& mode, Level level)
    : slot_(level == Level::Upper ? &tls.upper : &tls.lower) {
  before_ = *slot_;
  mode.below = before_;
  *slot_ = &mode;
}

ModeScope::~ModeScope() { *slot_ = before_; }

const OpInfo* find_op(std::string_view name, std::string_view overload) {
  const ArrayRef<const OpInfo*> ops = all_ops();
  const auto* const first =
      std::lower_bound(ops.begin(), ops.end(), name,
                       [](const OpInfo* op, std::string_view n) { return op->name < n; });
  const auto* it = first;
  for (; it != ops.end() && (*it)->name == name; ++it) {
    if ((*it)->overload == overload) {
      return *it;
    }
  }
  return overload.empty() && first != it ? *first
                                         : nullptr;  // none is without a name: the first declared
}

std::vector<Value> call(const OpInfo& op, const std::vector<Value>& arguments) {
  RL_CHECK_TYPE(arguments.size() == op.num_arguments, op.name, "(): expected ", op.num_arguments,
                " arguments in boxed form, but got ", arguments.size());
  return op.call(arguments);
}

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
}  // namespace

std::vector<Value> dispatch_upper(const OpInfo& op, const std::vector<Value>& arguments) {
  const Popped popped(tls.upper);
  return popped.mode().handle(op, arguments);
}

std::vector<Value> dispatch_lower(const OpInfo& op, const std::vector<Value>& arguments) {
  const Popped popped(tls.lower);
  const NoGradGuard no_grad;  // below autograd: the caller records
  return popped.mode().handle(op, arguments);
}

}  // namespace rushlight
