// Limits of a thread.
#include "core/allowance.h"

#include <utility>

#include <rushlight/error.h>

namespace rushlight {

namespace {
thread_local Allowance* current = nullptr;

void take(uint64_t& left, uint64_t n, const char* what) {
  RL_CHECK(n <= left, "a program that runs while its file is read takes more ", what,
           " than a file may: restoring an object should take little");
  left -= n;
}
}  // namespace

Allowance::Allowance(uint64_t bytes, uint64_t rounds)
    : bytes_(bytes), rounds_(rounds), before_(std::exchange(current, this)) {}
Allowance::~Allowance() { current = before_; }

bool Allowance::is_limited() { return current != nullptr; }
void Allowance::take_bytes(uint64_t n) {
  if (current != nullptr) {
    take(current->bytes_, n, "memory");
  }
}
void Allowance::take_rounds(uint64_t n) {
  if (current != nullptr) {
    take(current->rounds_, n, "time");
  }
}

}  // namespace rushlight
