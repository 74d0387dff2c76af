// The state of a thread: one struct, one TLS access. Modes see every op in boxed form
// (include/rushlight/mode.h).
#pragma once

#include <cstdint>
#include <utility>

#include <rushlight/asks.h>
#include <rushlight/export.h>

namespace rushlight {

struct Mode;
struct SavedTensorHooks;
class Node;
class Run;
class Notebook;

struct ThreadState {
  // The topmost mode above autocast and autograd, and below them; usually null.
  Mode* upper() const { return upper_; }
  Mode* lower() const { return lower_; }
  Mode* exchange_upper(Mode* mode) {
    ask_if(ask::mode_above, mode != nullptr);
    return std::exchange(upper_, mode);
  }
  Mode* exchange_lower(Mode* mode) {
    ask_if(ask::mode_below, mode != nullptr);
    return std::exchange(lower_, mode);
  }
  // A bit for each DeviceType that autocast is on for (autocast.h).
  uint8_t autocast() const { return autocast_; }
  uint8_t exchange_autocast(uint8_t devices) {
    ask_if(ask::autocast, devices != 0);
    return std::exchange(autocast_, devices);
  }
  Asks asks() const { return asks_; }  // what these say of every call

  bool grad_mode = true;
  bool inference_mode = false;
  bool anomaly_mode = false;
  bool anomaly_check_nan = true;
  bool transforming = false;                // a function runs that a transform differentiates
  uint32_t transform = 0;                   // the number of that transform
  bool see_special = true;                  // whether special tensors bring their handlers
  uint64_t next_sequence = 0;               // of the nodes recorded here
  SavedTensorHooks* saved_hooks = nullptr;  // innermost ones; usually null
  Node* current_node = nullptr;             // whose backward runs
  Run* run = nullptr;                       // the innermost backward run
  Run* wanted_by = nullptr;             // the same where it wants only some gradients; usually null
  Notebook* notebook = nullptr;             // where formulas are noted, not run; usually null
  uint32_t backward_depth = 0;          // backward runs nested on this thread
  uint64_t forward_limit = UINT64_MAX;  // tangents of later levels are not seen (forward.h)
  // Where a gradient is being added to a leaf further up: what tells this thread's additions from
  // those of others.
  const void* accumulating = nullptr;

 private:
  void ask_if(Asks bit, bool wanted) { asks_ = wanted ? asks_ | bit : asks_ & ~bit; }

  Asks asks_ = 0;
  uint8_t autocast_ = 0;
  Mode* upper_ = nullptr;
  Mode* lower_ = nullptr;
};
RL_CONSTINIT extern RL_API thread_local ThreadState tls __attribute__((tls_model("initial-exec")));

inline bool grad_enabled() { return tls.grad_mode; }

// Sets the mode for a scope.
class GradMode {
 public:
  explicit GradMode(bool enabled) : before_(tls.grad_mode) { tls.grad_mode = enabled; }
  ~GradMode() { tls.grad_mode = before_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;
  static bool is_enabled() { return tls.grad_mode; }
  static void set_enabled(bool enabled) { tls.grad_mode = enabled; }

 private:
  bool before_;
};
using AutoGradMode = GradMode;
struct NoGradGuard : GradMode {
  NoGradGuard() : GradMode(false) {}
};

class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true)
      : grad_(tls.grad_mode), inference_(tls.inference_mode) {
    tls.inference_mode = enabled;
    tls.grad_mode = !enabled;
  }
  ~InferenceMode() {
    tls.grad_mode = grad_;
    tls.inference_mode = inference_;
  }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;
  static bool is_enabled() { return tls.inference_mode; }

 private:
  bool grad_;
  bool inference_;
};

}  // namespace rushlight
