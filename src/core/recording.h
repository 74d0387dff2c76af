// While a step is recorded (rushlight/capture.h): what it does beside the ops, which no replay
// would do, is refused where it happens.
#pragma once

#include <functional>

#include <rushlight/export.h>

namespace rushlight {

using Refusal = std::function<void(const char* what)>;

RL_API bool is_recording();  // on this thread
// Throws where a step is recorded on this thread: "the step `what`".
RL_API void refuse_in_recording(const char* what);
// The refusal of this thread; null where nothing is recorded. The one before.
RL_API const Refusal* exchange_refusal(const Refusal* refusal);

}  // namespace rushlight
