#include "core/recording.h"

#include <utility>

namespace rushlight {

namespace {
thread_local const Refusal* refuses = nullptr;
}

bool is_recording() { return refuses != nullptr; }
void refuse_in_recording(const char* what) {
  if (refuses != nullptr) {
    (*refuses)(what);
  }
}
const Refusal* exchange_refusal(const Refusal* refusal) { return std::exchange(refuses, refusal); }

}  // namespace rushlight
