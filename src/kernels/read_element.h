// Bools of memory that another dtype wrote, or nobody: their bytes may be neither 0 nor 1, which
// C++ must not read as bool. Any byte but 0 is true.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/inline.h"

namespace rushlight {

// An element of any dtype; what is no bool is read as it is.
template <class T>
RL_INLINE T read_element(const T* at) {
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const uint8_t*>(at) != 0;
  } else {
    return *at;
  }
}

}  // namespace rushlight
