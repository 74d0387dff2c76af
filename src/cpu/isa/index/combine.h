// How an element that is written by index is combined with the one that is there, for index.cpp,
// scatter.cpp and mask.cpp.
#pragma once

#include <cstdint>

#include "core/op_support.h"
#include "kernels/read_element.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

inline constexpr int64_t work_per_task = 16384;  // elements

struct Assign {
  template <class T>
  static void apply(T& to, const T& from) {
    to = read_element(&from);
  }
};
struct Add {
  template <class T>
  static void apply(T& to, const T& from) {
    using C = compute_t<T>;
    const C x = static_cast<C>(read_element(&to));
    to = static_cast<T>(math::add(x, static_cast<C>(read_element(&from))));
  }
};
struct Multiply {
  template <class T>
  static void apply(T& to, const T& from) {
    using C = compute_t<T>;
    const C x = static_cast<C>(read_element(&to));
    to = static_cast<T>(math::mul(x, static_cast<C>(read_element(&from))));
  }
};
struct Larger {
  template <class T>
  static void apply(T& to, const T& from) {
    const T x = read_element(&to);
    const T y = read_element(&from);
    to = (x > y) | (x != x) ? x : y;
  }
};
struct Smaller {
  template <class T>
  static void apply(T& to, const T& from) {
    const T x = read_element(&to);
    const T y = read_element(&from);
    to = (x < y) | (x != x) ? x : y;
  }
};

[[noreturn]] inline void out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  throw IndexError(
      str("index ", index, " is out of bounds for dimension ", dim, " with size ", size));
}

}  // namespace rushlight::cpu::RL_ISA
