// mt19937, the engine of the CPU generator (Matsumoto and Nishimura 1998), with its numbers drawn
// in bulk: the state is advanced and tempered in loops that the compiler turns into vector code.
// Functions have internal linkage: kernels compile this for several instruction sets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rushlight {

struct Mt19937 {
  static constexpr int n = 624;
  static constexpr int m = 397;
  uint32_t state[n];
  int position;      // of the next number; n: a new block is due
  bool just_seeded;  // no number drawn since (PyTorch's state format tells the two apart)
};

namespace {

inline void seed_engine(Mt19937& e, uint64_t seed) {
  e.state[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < Mt19937::n; i++) {
    e.state[i] = 1812433253u * (e.state[i - 1] ^ (e.state[i - 1] >> 30)) + i;
  }
  e.position = Mt19937::n;
  e.just_seeded = true;
}

inline uint32_t twist(uint32_t u, uint32_t v) {
  const uint32_t mixed = (u & 0x80000000u) | (v & 0x7fffffffu);
  return (mixed >> 1) ^ (-(v & 1u) & 0x9908b0dfu);
}

inline void next_block(Mt19937& e) {
  constexpr int n = Mt19937::n;
  constexpr int m = Mt19937::m;
  uint32_t* s = e.state;
  for (int i = 0; i < n - m; i++) {
    s[i] = s[i + m] ^ twist(s[i], s[i + 1]);
  }
  // Each reads what was written n - m places before it, far more than a vector away.
  for (int i = n - m; i < n - 1; i++) {
    s[i] = s[i + m - n] ^ twist(s[i], s[i + 1]);
  }
  s[n - 1] = s[m - 1] ^ twist(s[n - 1], s[0]);
  e.position = 0;
  e.just_seeded = false;
}

inline uint32_t temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

inline uint32_t next_32(Mt19937& e) {
  if (e.position == Mt19937::n) {
    next_block(e);
  }
  return temper(e.state[e.position++]);
}

// The first number drawn is the upper half.
inline uint64_t next_64(Mt19937& e) {
  const uint64_t high = next_32(e);
  return high << 32 | next_32(e);
}

inline void draw(Mt19937& e, uint32_t* out, int64_t count) {
  while (count > 0) {
    if (e.position == Mt19937::n) {
      next_block(e);
    }
    const int64_t k = std::min<int64_t>(count, Mt19937::n - e.position);
    const uint32_t* s = e.state + e.position;
    for (int64_t i = 0; i < k; i++) {
      out[i] = temper(s[i]);
    }
    e.position += static_cast<int>(k);
    out += k;
    count -= k;
  }
}

}  // namespace
}  // namespace rushlight
