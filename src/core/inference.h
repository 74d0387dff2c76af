// Tensors made in inference mode: what may not be done with them outside.
#pragma once

#include <rushlight/tensor.h>
#include <rushlight/thread_state.h>

namespace rushlight {

// Before `t` is written, in place or as out=.
inline void check_inference_write(const char* op, const Tensor& t) {
  RL_CHECK(!t.impl()->is_inference() || tls.inference_mode, op,
           ": Inplace update to inference tensor outside InferenceMode: it counts no versions. "
           "Write to a clone() of it, or under inference_mode().");
}

}  // namespace rushlight
