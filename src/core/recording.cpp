#include "core/recording.h"

#include <utility>

namespace rushlight {

namespace {
thread_local Refusal* refuses = nullptr;
}

bool is_recording() { return refuses != nullptr; }
void refuse_in_recording(const char* what) {
  if (refuses != nullptr) {
    refuses->refuse(what);
  }
}
Refusal* exchange_refusal(Refusal* refusal) { return std::exchange(refuses, refusal); }

}  // namespace rushlight
