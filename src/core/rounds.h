// Rounds of work whose number a caller says, which nothing else bounds.
#pragma once

#include <cstdint>

#include <rushlight/export.h>

namespace rushlight {

// Before `n` rounds: takes them from what the thread may take (allowance.h), and asks whether the
// work has to end (rushlight/interrupt.h). Throws where it has to.
RL_API void begin_rounds(uint64_t n);
// Asks the same in the midst of an op, between pieces of its work; what it has written by then
// stays.
RL_API void look_for_end();

// What runs while it lives is not ended by that: others rely on its being done.
class Uninterrupted {
 public:
  Uninterrupted() { depth_++; }
  ~Uninterrupted() { depth_--; }
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;

 private:
  friend void look_for_end();
  static thread_local int depth_;
};

}  // namespace rushlight
