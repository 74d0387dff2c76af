// How an element that is written by index is combined with the one that is there, for index.cpp,
// scatter.cpp and mask.cpp. Both may be of one dtype, or one of them in the other's compute type.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/dims.h"
#include "cpu/isa/pointwise/convert_run.h"
#include "cpu/scratch.h"
#include "kernels/read_element.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {

inline constexpr int64_t work_per_task = 16384;  // elements

struct Assign {
  template <class T, class S>
  static void apply(T& to, const S& from) {
    to = static_cast<T>(read_element(&from));
  }
};
struct Add {
  template <class T, class S>
  static void apply(T& to, const S& from) {
    using C = compute_t<T>;
    const C x = static_cast<C>(read_element(&to));
    to = static_cast<T>(math::add(x, static_cast<C>(read_element(&from))));
  }
};
struct Multiply {
  template <class T, class S>
  static void apply(T& to, const S& from) {
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

// to[i * stride] is combined with from[i]. `stride` in bytes.
template <class How, class T, class S>
void combine_run(char* to, int64_t stride, const S* from, int64_t n) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; i++) {
      How::apply(out[i], from[i]);
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      How::apply(*reinterpret_cast<T*>(to + i * stride), from[i]);
    }
  }
}

// Whether elements of T that meet by How are to be combined in the compute type and rounded once:
// a sum of 16 bits that is rounded at every step stops growing.
template <class How, class T>
inline constexpr bool meets_wide = (std::is_same_v<How, Add> || std::is_same_v<How, Multiply>) &&
                                   sizeof(compute_t<T>) > sizeof(T) && !std::is_integral_v<T>;

// Numbers the keys that it is asked for in the order in which they come. It has room for `most` of
// them.
class Numbering {
 public:
  explicit Numbering(int64_t most)
      : bits_(std::bit_width(static_cast<uint64_t>(2 * most))),
        table_(int64_t{1} << bits_),
        keys_(most) {
    clear();
  }
  void clear() {
    std::fill_n(table_.data(), int64_t{1} << bits_, int64_t{-1});
    count_ = 0;
  }
  RL_INLINE int64_t operator()(int64_t key) {
    const int64_t last = (int64_t{1} << bits_) - 1;
    auto at =
        static_cast<int64_t>(static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u >> (64 - bits_));
    while (table_[at] >= 0) {
      if (keys_[table_[at]] == key) {
        return table_[at];
      }
      at = (at + 1) & last;
    }
    table_[at] = count_;
    keys_[count_] = key;
    return count_++;
  }
  int64_t count() const { return count_; }
  const int64_t* keys() const { return keys_.data(); }

 private:
  int bits_;
  Scratch<int64_t> table_;  // numbers
  Scratch<int64_t> keys_;   // by number
  int64_t count_ = 0;
};

// Calls f(address, element, stride, n) for the runs of all elements.
template <class F>
void for_elements(char* to, const Dims& all, const F& f) {
  parallel_for(0, all.numel(), work_per_task, [&](int64_t begin, int64_t end) {
    for_runs(all, begin, end, [&](int64_t i, int64_t offset, int64_t stride, int64_t n) {
      f(to + offset, i, stride, n);
    });
  });
}

// [outer][size][inner] as one geometry.
inline Dims join_dims(const Dims& outer, int64_t size, int64_t stride, const Dims& inner) {
  Dims all = inner;
  all.add(size, stride);
  for (int d = 0; d < outer.n; d++) {
    all.add(outer.size[d], outer.stride[d]);
  }
  return all;
}

// The elements of a window widened to C, from the last to the first dimension, and back.
template <class C, class T>
void widen(C* wide, char* from, const Dims& all) {
  for_elements(from, all, [&](const char* at, int64_t i, int64_t stride, int64_t n) {
    convert_run<C, T>(wide + i, at, stride, n);
  });
}
template <class T, class C>
void round_into(char* to, const Dims& all, const C* wide) {
  for_elements(to, all, [&](char* at, int64_t i, int64_t stride, int64_t n) {
    combine_run<Assign, T>(at, stride, wide + i, n);
  });
}

// Whether several positions are one element.
inline bool overlaps(const Dims& dims) {
  return std::find(dims.stride, dims.stride + dims.n, 0) != dims.stride + dims.n;
}

[[noreturn]] inline void raise_out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  throw IndexError(
      str("index ", index, " is out of bounds for dimension ", dim, " with size ", size));
}

}  // namespace rushlight::cpu::RL_ISA
