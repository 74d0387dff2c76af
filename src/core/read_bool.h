// A bool of memory that nobody wrote: its byte may be neither true nor false, which C++ must not
// read as a bool.
#pragma once

#include <cstdint>

namespace rushlight {

inline __attribute__((always_inline)) bool read_bool(const void* at) {
  return *static_cast<const uint8_t*>(at) != 0;
}

}  // namespace rushlight
