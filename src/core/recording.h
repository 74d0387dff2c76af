// While a step is recorded (rushlight/capture.h): what it does beside the ops, which no replay
// would do, is refused where it happens.
#pragma once

#include <rushlight/export.h>

namespace rushlight {

struct Refusal {
  virtual void refuse(const char* what) = 0;

 protected:
  ~Refusal() = default;
};

RL_API bool is_recording();  // on this thread
// Throws where a step is recorded on this thread: "the step `what`".
RL_API void refuse_in_recording(const char* what);
// The refusal of this thread; null where nothing is recorded. The one before.
RL_API Refusal* exchange_refusal(Refusal* refusal);

}  // namespace rushlight
