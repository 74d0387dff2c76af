// The modes above autograd turned off for a scope; those below stay.
#pragma once

#include <rushlight/thread_state.h>

namespace rushlight {

class WithoutUpperModes {
 public:
  WithoutUpperModes() : before_(tls.exchange_upper(nullptr)) {}
  ~WithoutUpperModes() { tls.exchange_upper(before_); }
  WithoutUpperModes(const WithoutUpperModes&) = delete;
  WithoutUpperModes& operator=(const WithoutUpperModes&) = delete;

 private:
  Mode* before_;
};

}  // namespace rushlight
