// From the number of an element to where it lies: division by constants through a multiplication,
// and the walk over dimensions that a TensorIterator has merged. Plain code for host and device;
// tests/cpp/test_cuda_host.cpp runs it on the host.
#pragma once

#include <cstdint>

#include "kernels/inline.h"

namespace rushlight::cuda {

// n / d for every n below 2^31 and d from 1 to 2^31 - 1 (Granlund and Montgomery): with
// s = ceil(log2 d) and m = floor(2^32 (2^s - d) / d) + 1 it is (n + mulhi(n, m)) >> s.
class Divider {
 public:
  RL_INLINE Divider() : divisor_(1), magic_(1), shift_(0) {}
  explicit Divider(uint32_t divisor) : divisor_(divisor), shift_(0) {
    while (shift_ < 31 && (uint32_t{1} << shift_) < divisor) {
      shift_++;
    }
    magic_ = static_cast<uint32_t>((((uint64_t{1} << shift_) - divisor) << 32) / divisor + 1);
  }
  RL_INLINE uint32_t divisor() const { return divisor_; }
  RL_INLINE uint32_t divide(uint32_t n) const {
    const auto high = static_cast<uint32_t>((static_cast<uint64_t>(n) * magic_) >> 32);
    return (n + high) >> shift_;
  }

 private:
  uint32_t divisor_;
  uint32_t magic_;
  uint32_t shift_;
};

// Byte offsets of an element in each of N operands. Dimensions are innermost first.
template <int N>
struct Walk {
  static constexpr int max_dims = 16;
  int ndim = 0;
  Divider sizes[max_dims];
  int64_t strides[max_dims][N];
  int64_t base[N] = {};

  RL_INLINE void offsets(uint32_t element, int64_t (&out)[N]) const {
    for (int i = 0; i < N; i++) {
      out[i] = base[i];
    }
    for (int d = 0; d < ndim; d++) {
      const uint32_t rest = sizes[d].divide(element);
      const uint32_t at = element - rest * sizes[d].divisor();
      element = rest;
      for (int i = 0; i < N; i++) {
        out[i] += at * strides[d][i];
      }
    }
  }
};

}  // namespace rushlight::cuda
