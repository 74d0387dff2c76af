// Modes and the registry of ops in boxed form. A mode is an object on a per-thread stack that sees
// every op call before it runs; while its handler runs it is popped, so the ops that it calls
// itself go to the mode below.
#pragma once

#include <rushlight/thread_state.h>
#include <rushlight/value.h>

namespace rushlight {

struct OpInfo {
  const char* name;      // "add"
  const char* overload;  // "Tensor", or ""
  const char* schema;    // whole signature
  size_t num_arguments;
  std::vector<Value> (*call)(
      const std::vector<Value>& arguments);  // through modes, autograd and all
};

struct RL_API Mode {
  virtual ~Mode();
  // Handles one call; the default way is `return op.call(arguments);`.
  virtual std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) = 0;
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
  Mode** slot_;
};

RL_API ArrayRef<const OpInfo*> all_ops();  // by name
// Null where there is none; `overload` "" finds the first.
RL_API const OpInfo* find_op(std::string_view name, std::string_view overload = "");
// Checks the number of arguments, then calls.
RL_API std::vector<Value> call(const OpInfo& op, const std::vector<Value>& arguments);
// Used by generated code when tls.upper or tls.lower is set. The lower handler runs without
// recording.
RL_API std::vector<Value> dispatch_upper(const OpInfo& op, const std::vector<Value>& arguments);
RL_API std::vector<Value> dispatch_lower(const OpInfo& op, const std::vector<Value>& arguments);

}  // namespace rushlight
