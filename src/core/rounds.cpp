#include "core/rounds.h"

#include <atomic>

#include <rushlight/interrupt.h>

#include "core/allowance.h"

namespace rushlight {

namespace {
std::atomic<void (*)()> interrupt{nullptr};
}  // namespace

void set_interrupt(void (*ask)()) { interrupt.store(ask, std::memory_order_relaxed); }

void begin_rounds(uint64_t n) {
  Allowance::take_rounds(n);
  if (void (*const ask)() = interrupt.load(std::memory_order_relaxed)) {
    ask();
  }
}

}  // namespace rushlight
