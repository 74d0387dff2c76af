// How an element that is written by index meets the one that is there, for index.cpp, scatter.cpp
// and mask.cpp.
#pragma once

#include <cstdint>

#include "core/op_support.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

inline constexpr int64_t work_per_task = 16384;  // elements

struct Assign {
  template <class T>
  static void apply(T& to, T from) {
    to = from;
  }
};
struct Add {
  template <class T>
  static void apply(T& to, T from) {
    using C = compute_t<T>;
    to = static_cast<T>(math::add(static_cast<C>(to), static_cast<C>(from)));
  }
};
struct Multiply {
  template <class T>
  static void apply(T& to, T from) {
    using C = compute_t<T>;
    to = static_cast<T>(math::mul(static_cast<C>(to), static_cast<C>(from)));
  }
};
struct Larger {
  template <class T>
  static void apply(T& to, T from) {
    to = (to > from) | (to != to) ? to : from;
  }
};
struct Smaller {
  template <class T>
  static void apply(T& to, T from) {
    to = (to < from) | (to != to) ? to : from;
  }
};

[[noreturn]] inline void out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  throw IndexError(
      str("index ", index, " is out of bounds for dimension ", dim, " with size ", size));
}

}  // namespace rushlight::cpu::RL_ISA
