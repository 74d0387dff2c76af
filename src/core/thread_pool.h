// Threads that help whoever calls, if they come in time.
#pragma once

#include <cstdint>

namespace rushlight {

using TeamFunction = void (*)(void* work, int64_t member);

// Calls f(work, 0) on the calling thread, and f(work, i) with some i >= 1 on each of at most
// `helpers` threads that are free while it runs; returns when all that came have left. Nobody is
// waited for who has not come: f does the work whoever takes part, and must not throw. Several
// threads may call at once; they share the helpers.
void run_with_helpers(int64_t helpers, TeamFunction f, void* work);

}  // namespace rushlight
