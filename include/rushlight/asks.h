// Who may want to see a call of an op before it runs: one word. A wrapper joins those of the
// thread, the process and its tensors; usually none but `grad`, and it goes straight on.
// Everything else is decided in src/core/intercept.cpp, by a table of interceptors in their order.
#pragma once

#include <atomic>
#include <cstdint>

#include <rushlight/export.h>

namespace rushlight {

using Asks = uint32_t;

namespace ask {
// A tensor's, a byte (TensorImpl::asks). The least is the one that most calls have.
inline constexpr Asks grad = 1 << 0;       // it wants a gradient, or is a view of what may
inline constexpr Asks special = 1 << 1;    // it brings its own handling of ops (mode.h)
inline constexpr Asks undefined = 1 << 2;  // it is not there, where it must be
// A thread's (ThreadState).
inline constexpr Asks mode_above = 1 << 8;   // a mode above autograd: a trace
inline constexpr Asks autocast = 1 << 9;     // it is on for some device
inline constexpr Asks mode_below = 1 << 10;  // a mode below autograd: a profiler, vmap
// The process's.
inline constexpr Asks tangents = 1 << 16;   // a level of forward mode is open
inline constexpr Asks overrides = 1 << 17;  // some op has been overridden

// What is answered where the kernel would run, below autograd.
inline constexpr Asks below = special | mode_below;
}  // namespace ask

extern RL_API std::atomic<Asks> process_asks;

}  // namespace rushlight
