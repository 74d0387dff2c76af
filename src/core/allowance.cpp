// Limits of a thread.
#include "core/allowance.h"

#include <utility>

#include <rushlight/error.h>

namespace rushlight {

constinit thread_local Allowance* Allowance::current_ = nullptr;

Allowance::Allowance(uint64_t bytes, uint64_t rounds)
    : bytes_(bytes), rounds_(rounds), before_(std::exchange(current_, this)) {}
Allowance::~Allowance() { current_ = before_; }

void Allowance::take(uint64_t& left, uint64_t n, const char* what) {
  RL_CHECK(n <= left, "a program that runs while its file is read takes more ", what,
           " than a file may: restoring an object should take little");
  left -= n;
}

}  // namespace rushlight
