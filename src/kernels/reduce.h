// Formulas of reductions that fold elements one by one, for all devices: identity, map (of
// an element) and combine (of two partial results), all branch-free and generic over scalars and
// vectors of the compiler. A new one is a struct here and a line in src/cpu/isa/reduce/reduce.cpp.
#pragma once

#include <limits>

#include <rushlight/dtype.h>

#include "kernels/math.h"

namespace rushlight::fold {

// What T, or a vector V of it, is added and multiplied as: integers without their sign, so that
// they wrap.
template <class T, class V>
struct Wrapping {
  using type = V;
};
template <class T, class V>
  requires std::is_integral_v<T>
struct Wrapping<T, V> {
  typedef std::make_unsigned_t<T> type __attribute__((vector_size(sizeof(V))));
};
template <class T>
  requires std::is_integral_v<T>
struct Wrapping<T, T> {
  using type = math::Wrapping<T>;
};

template <class T>
struct Sum {
  using type = T;
  static constexpr T identity() { return T(0); }
  template <class V>
  static constexpr V map(V x) {
    return x;
  }
  template <class V>
  static constexpr V combine(V a, V b) {
    using W = typename Wrapping<T, V>::type;
    return (V)((W)a + (W)b);
  }
};

// NaN counts as zero.
template <class T>
struct NanSum : Sum<T> {
  template <class V>
  static constexpr V map(V x) {
    return x == x ? x : V{};
  }
};
template <class T>
struct NanSum<complex<T>> : Sum<complex<T>> {
  static constexpr complex<T> map(complex<T> x) { return x == x ? x : complex<T>(); }
};

template <class T>
struct Prod {
  using type = T;
  static constexpr T identity() { return T(1); }
  template <class V>
  static constexpr V map(V x) {
    return x;
  }
  template <class V>
  static constexpr V combine(V a, V b) {
    using W = typename Wrapping<T, V>::type;
    return (V)((W)a * (W)b);
  }
};

template <class T>
constexpr T lowest_value() {
  if constexpr (std::numeric_limits<T>::has_infinity) {
    return -std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::lowest();
  }
}
template <class T>
constexpr T highest_value() {
  if constexpr (std::numeric_limits<T>::has_infinity) {
    return std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::max();
  }
}

// The first NaN met stays.
template <class T>
struct Max {
  using type = T;
  static constexpr T identity() { return lowest_value<T>(); }
  template <class V>
  static constexpr V map(V x) {
    return x;
  }
  template <class V>
  static constexpr V combine(V a, V b) {
    if constexpr (std::is_integral_v<T>) {
      return a > b ? a : b;
    } else {
      const V number = a > b ? a : b;  // two choices, which vectorise, and not one of two reasons
      return a != a ? a : number;
    }
  }
};
template <class T>
struct Min {
  using type = T;
  static constexpr T identity() { return highest_value<T>(); }
  template <class V>
  static constexpr V map(V x) {
    return x;
  }
  template <class V>
  static constexpr V combine(V a, V b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? a : b;
    } else {
      const V number = a < b ? a : b;  // two choices, which vectorise, and not one of two reasons
      return a != a ? a : number;
    }
  }
};

// Norms: sums of |x|, of x * x; the largest and smallest |x|.
template <class T>
struct SumAbs : Sum<T> {
  template <class V>
  static constexpr V map(V x) {
    return x < T(0) ? -x : x;
  }
};
template <class T>
struct SumSquares : Sum<T> {
  template <class V>
  static constexpr V map(V x) {
    return x * x;
  }
};
template <class T>
struct MaxAbs : Max<T> {
  static constexpr T identity() { return T(0); }
  template <class V>
  static constexpr V map(V x) {
    return x < T(0) ? -x : x;
  }
};
template <class T>
struct MinAbs : Min<T> {
  template <class V>
  static constexpr V map(V x) {
    return x < T(0) ? -x : x;
  }
};

// On bytes, of which any but 0 is true; the total is 0 or 1.
struct Any {
  using type = uint8_t;
  static constexpr uint8_t identity() { return 0; }
  template <class V>
  static constexpr V map(V x) {
    return (V)(x != 0) & 1;
  }
  template <class V>
  static constexpr V combine(V a, V b) {
    return a | b;
  }
};
struct All {
  using type = uint8_t;
  static constexpr uint8_t identity() { return 1; }
  template <class V>
  static constexpr V map(V x) {
    return (V)(x != 0) & 1;
  }
  template <class V>
  static constexpr V combine(V a, V b) {
    return a & b;
  }
};

}  // namespace rushlight::fold
