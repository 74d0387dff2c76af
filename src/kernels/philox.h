// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): four random 32-bit numbers for each counter
// under a key, without a state, so that any thread makes any number of a stream. Plain code for all
// devices; tests/cpp/test_philox.cpp holds it to the known answers that its authors publish.
#pragma once

#include <cstdint>

#include "kernels/inline.h"

namespace rushlight::philox {

struct Numbers {
  uint32_t at[4];
};

RL_INLINE Numbers numbers(Numbers counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; round++) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter.at[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter.at[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.at[1] ^ key0, static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.at[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// The numbers that stream `stream` under a seed gives from `offset` (a multiple of 4) on.
RL_INLINE Numbers numbers(uint64_t seed, uint64_t stream, uint64_t offset) {
  const uint64_t block = offset / 4;
  return numbers({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                   static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)}},
                 static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

// In [0, 1): 24 bits in float, 53 in double.
RL_INLINE float unit_float(uint32_t x) { return static_cast<float>(x >> 8) * 0x1p-24f; }
RL_INLINE double unit_double(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

}  // namespace rushlight::philox
