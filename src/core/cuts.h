// How parallel_for cut its ranges, for tests of how finely work is shared out.
#pragma once

#include <cstdint>
#include <vector>

#include <rushlight/export.h>

namespace rushlight {

// Begins to write down the chunks of every parallel_for that has several and is not nested in one.
RL_API void watch_cuts();
// Ends that, and gives what was written.
RL_API std::vector<int64_t> recorded_cuts();

}  // namespace rushlight
