// Ranges that a program names, and those who note them.
#include <rushlight/record_function.h>

#include <chrono>

namespace rushlight {

namespace {
thread_local RangeRecorder* recorders = nullptr;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
}  // namespace

RangeRecorder::~RangeRecorder() = default;

void RangeRecorder::enter() {
  outer_ = recorders;
  recorders = this;
}

void RangeRecorder::leave() {
  RL_CHECK(recorders == this, "a profiler can only end where the one that began last ends");
  recorders = outer_;
}

RangeRecorder* RangeRecorder::innermost() { return recorders; }

bool RecordFunction::needsInputs() const {
  for (const RangeRecorder* r = recorders; r != nullptr; r = r->outer()) {
    if (r->wants_shapes()) {
      return true;
    }
  }
  return false;
}

void RecordFunction::before(std::string name, int64_t sequence) {
  range_.name = std::move(name);
  range_.sequence = sequence;
  range_.begin = now();
}

void RecordFunction::end() {
  if (active_ && range_.begin != 0) {
    range_.end = now();
    for (RangeRecorder* r = recorders; r != nullptr; r = r->outer()) {
      r->record(range_);
    }
  }
  active_ = false;
}

}  // namespace rushlight
