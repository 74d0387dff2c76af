// The state of a thread: one struct, one TLS access. Modes see every op in boxed form
// (include/rushlight/mode.h).
#pragma once

#include <cstdint>

#include <rushlight/export.h>

namespace rushlight {

struct Mode;
struct SavedTensorHooks;
class Node;
class Run;

struct ThreadState {
  bool grad_mode = true;
  bool inference_mode = false;
  bool anomaly_mode = false;
  bool anomaly_check_nan = true;
  bool transforming = false;   // a function runs that a transform differentiates
  uint8_t autocast = 0;        // a bit for each DeviceType that it is on for (autocast.h)
  uint32_t transform = 0;      // the number of that transform
  Mode* upper = nullptr;       // topmost mode above autocast and autograd; usually null
  Mode* lower = nullptr;       // topmost mode below them (profiler)
  bool see_special = true;     // whether special tensors bring their handlers
  uint64_t next_sequence = 0;  // of the nodes recorded here
  SavedTensorHooks* saved_hooks = nullptr;  // innermost ones; usually null
  Node* current_node = nullptr;             // whose backward runs
  Run* run = nullptr;                       // the innermost backward run
  Run* wanted_by = nullptr;             // the same where it wants only some gradients; usually null
  uint32_t backward_depth = 0;          // backward runs nested on this thread
  uint64_t forward_limit = UINT64_MAX;  // tangents of later levels are not seen (forward.h)
  // Where a gradient is being added to a leaf further up: what tells this thread's additions from
  // those of others.
  const void* accumulating = nullptr;
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
