// What a program of a file may take while the file is read: bytes, and rounds of its loops and
// calls. Both only grow less, so that what it computes with is bounded, too.
#pragma once

#include <cstdint>

#include <rushlight/export.h>

namespace rushlight {

// Limits this thread for the length of a scope.
class RL_API Allowance {
 public:
  Allowance(uint64_t bytes, uint64_t rounds);
  ~Allowance();
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  // Whether this thread is limited now.
  static bool is_limited() { return current_ != nullptr; }
  // RuntimeError where so many are not left; nothing where the thread is not limited.
  static void take_bytes(uint64_t n) {
    if (is_limited()) {
      take(current_->bytes_, n, "memory");
    }
  }
  static void take_rounds(uint64_t n) {
    if (is_limited()) {
      take(current_->rounds_, n, "time");
    }
  }

 private:
  static void take(uint64_t& left, uint64_t n, const char* what);
  static constinit thread_local Allowance* current_ __attribute__((tls_model("initial-exec")));
  uint64_t bytes_;
  uint64_t rounds_;
  Allowance* before_;
};

}  // namespace rushlight
