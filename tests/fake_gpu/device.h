// What fake_gpu's parts share.
#pragma once

#include <functional>

namespace fake_gpu {

// Runs something on a stream, behind what it has: at once on the first one (null), on the stream's
// thread otherwise.
void enqueue(void* stream, std::function<void()> task);

}  // namespace fake_gpu
