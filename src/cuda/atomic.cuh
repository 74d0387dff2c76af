// Updates of one element by many threads: add, multiply, the larger, the smaller, for every dtype.
// The order in which threads come is not fixed, so sums of floats may differ in their last bits
// from run to run.
#pragma once

#include "cuda/element.cuh"
#include "kernels/math.h"

namespace rushlight::cuda {

struct Add {
  template <class T>
  __device__ static T combine(T a, T b) {
    return math::add(a, b);
  }
};
struct Multiply {
  template <class T>
  __device__ static T combine(T a, T b) {
    return math::mul(a, b);
  }
};
struct Larger {
  template <class T>
  __device__ static T combine(T a, T b) {
    return math::maximum(a, b);
  }
};
struct Smaller {
  template <class T>
  __device__ static T combine(T a, T b) {
    return math::minimum(a, b);
  }
};
struct Assign {};

// *p becomes How(*p, value), as one step.
template <class How, class T>
__device__ void atomic_combine(T* p, T value) {
  if constexpr (std::is_same_v<How, Assign>) {
    *p = value;
  } else if constexpr (std::is_same_v<How, Add> &&
                       (std::is_same_v<T, float> || std::is_same_v<T, double>)) {
    atomicAdd(p, value);
  } else if constexpr (std::is_same_v<How, Add> && is_complex_v<T>) {
    atomicAdd(&p->re, value.re);
    atomicAdd(&p->im, value.im);
  } else if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    using Word = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
    auto* const word = reinterpret_cast<Word*>(p);
    Word seen = *word;
    Word before;
    do {
      before = seen;
      const T old = std::bit_cast<T>(before);
      seen = atomicCAS(word, before, std::bit_cast<Word>(How::combine(old, value)));
    } while (seen != before);
  } else if constexpr (sizeof(T) < 4) {
    // The word of four bytes that it lies in; blocks of memory begin and end at whole words.
    const auto address = reinterpret_cast<uintptr_t>(p);
    auto* const word = reinterpret_cast<unsigned*>(address & ~uintptr_t{3});
    const unsigned shift = static_cast<unsigned>(address & 3) * 8;
    const unsigned mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
    using Bits = std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>;
    unsigned seen = *word;
    unsigned before;
    do {
      before = seen;
      const Bits stored = static_cast<Bits>((before & mask) >> shift);
      const T old = read_element(reinterpret_cast<const T*>(&stored));
      const auto wide = How::combine(widen(old), widen(value));
      const T fresh = narrow<T>(wide);
      const unsigned bits = static_cast<unsigned>(std::bit_cast<Bits>(fresh)) << shift;
      seen = atomicCAS(word, before, (before & ~mask) | bits);
    } while (seen != before);
  } else {
    static_assert(sizeof(T) == 16, "complex128 is only added");
  }
}

}  // namespace rushlight::cuda
