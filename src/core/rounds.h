// Rounds of work whose number a caller says, which nothing else bounds.
#pragma once

#include <cstdint>

#include <rushlight/export.h>

namespace rushlight {

// Before `n` rounds: takes them from what the thread may take (allowance.h), and asks whether the
// work has to end (rushlight/interrupt.h). Throws where it has to.
RL_API void begin_rounds(uint64_t n);

}  // namespace rushlight
