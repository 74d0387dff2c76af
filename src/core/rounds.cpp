#include "core/rounds.h"

#include <atomic>

#include <rushlight/interrupt.h>

#include "core/allowance.h"

namespace rushlight {

namespace {
std::atomic<void (*)()> interrupt{nullptr};
std::atomic<void (*)()> interrupt_within{nullptr};
}  // namespace

thread_local int Uninterrupted::depth_ = 0;

void set_interrupt(void (*ask)(), void (*ask_within)()) {
  interrupt.store(ask, std::memory_order_relaxed);
  interrupt_within.store(ask_within, std::memory_order_relaxed);
}

void look_for_end() {
  if (void (*const ask)() = interrupt_within.load(std::memory_order_relaxed);
      ask != nullptr && Uninterrupted::depth_ == 0) {
    ask();
  }
}

void begin_rounds(uint64_t n) {
  Allowance::take_rounds(n);
  if (void (*const ask)() = interrupt.load(std::memory_order_relaxed)) {
    ask();
  }
}

}  // namespace rushlight
