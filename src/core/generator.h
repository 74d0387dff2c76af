// The state behind a Generator, and the random functions that are not worth vectorising: those in
// double precision, which must equal the C library's mathematics, and the serial normal numbers.
// Whoever draws numbers holds `mutex`.
#pragma once

#include <cstdint>
#include <mutex>

#include <rushlight/generator.h>

#include "core/mt19937.h"

namespace rushlight {

class RL_API GeneratorImpl {
 public:
  explicit GeneratorImpl(uint64_t seed, Device where = kCPU) : device(where) { set_seed(seed); }
  void set_seed(uint64_t seed);  // forgets cached numbers too

  std::mutex mutex;
  // The CPU's kernels draw from `engine`, those of other devices count in `offset`; devices of
  // host memory may have the CPU's.
  const Device device;
  Mt19937 engine;
  uint64_t seed;
  uint64_t offset;  // how many 32-bit numbers each of Philox's streams has given: a multiple of 4
  // The Box-Muller method makes two numbers; the second waits here.
  double next_normal;
  bool has_next_normal;
  // Part of PyTorch's state format; nothing on the CPU draws from it.
  float next_float_normal;
  bool has_next_float_normal;
};

namespace random {

// Of a generator that counts: the offset to draw from, which moves on by `numbers` in each stream.
RL_API uint64_t take_offset(GeneratorImpl& g, uint64_t numbers);
// A seed for drawing on the host what such a generator should give.
RL_API uint64_t take_seed(GeneratorImpl& g);

// One standard normal number, with the second of its pair kept for the next call: what normal_ does
// for fewer than 16 elements and for tensors that are not contiguous.
RL_API double next_normal(GeneratorImpl& g);
// x[0..16) are uniform numbers in [0, 1) and become normal ones: x[j] and x[j + 8] make a pair.
RL_API void normal_from_uniform_16(double* x, double mean, double std);
// Exponential numbers of rate lambda, in place of uniform ones in [0, 1).
RL_API void exponential_from_uniform(double* x, int64_t n, double lambda);

}  // namespace random
}  // namespace rushlight
