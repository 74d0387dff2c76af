// How numbers too small to be normal are treated.
#pragma once

#include <rushlight/export.h>

namespace rushlight {

// Whether they count as zero, as operands and as results: on this thread and on those that compute
// for it in `parallel_for`. False where the processor cannot do that.
RL_API bool set_flush_denormal(bool on);

}  // namespace rushlight
