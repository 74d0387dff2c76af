// The formulas of reductions, for all devices. One is a struct over the type T that it computes in:
//
//   State              a partial result: T itself, if nothing else is said
//   identity()         the state of no elements
//   map(x), or step(state, x, index)   what an element counts for, or the state with one more
//   combine(a, b)      the state of both; b is that of later elements
//   finish(state, n)   the result of n elements; without it, that is the state, and a Pair is two
//
// What is made of `map` is branch-free and generic over scalars and vectors of the compiler. An
// entry of kind `reduction` names its formula; kernels of both devices are generated from that.
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

// What T is: the type of the result (integers add up in int64), that of the elements (bool as
// bytes), or a byte that says whether an element is not zero.
enum class Over { Result, Element, Truth };

template <class T, Over from = Over::Result>
struct Reduction {
  using type = T;
  using State = T;
  static constexpr Over over = from;
  static constexpr bool widens = true;    // running ones of float32 are kept in double on the CPU
  static constexpr bool calls = false;    // `finish` calls functions of math::
  static constexpr bool ordered = false;  // `step` wants places in the order of the indices
};
template <class A, class B>
struct Pair {
  A first;
  B second;
  static constexpr int64_t offset = sizeof(A) > alignof(B) ? sizeof(A) : alignof(B);  // of `second`
};

// What T is for a dtype.
template <class D, Over from>
struct computed_in {
  using type = compute_t<D>;
};
template <class D, Over from>
  requires std::is_integral_v<D>
struct computed_in<D, from> {
  using type = std::conditional_t<from == Over::Result, int64_t,
                                  std::conditional_t<std::is_same_v<D, bool>, uint8_t, D>>;
};

template <class T>
struct Sum : Reduction<T> {
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

template <class T>
struct Mean : Sum<T> {
  static constexpr T finish(T total, int64_t n) {
    if constexpr (is_complex_v<T>) {
      return T(total.re / static_cast<real_t<T>>(n), total.im / static_cast<real_t<T>>(n));
    } else {
      return total / static_cast<T>(n);
    }
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
struct Prod : Reduction<T> {
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
struct Max : Reduction<T, Over::Element> {
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
struct Min : Reduction<T, Over::Element> {
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

// Of bytes that are 0 or 1, too, once they are mapped.
template <class T>
struct Any : Reduction<uint8_t, Over::Truth> {
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
template <class T>
struct All : Any<T> {
  static constexpr uint8_t identity() { return 1; }
  template <class V>
  static constexpr V combine(V a, V b) {
    return a & b;
  }
};
template <class T>
struct Count : Reduction<uint8_t, Over::Truth> {
  using State = int64_t;
  static constexpr State identity() { return 0; }
  static constexpr State step(State n, uint8_t x, int64_t) { return n + (x != 0 ? 1 : 0); }
  static constexpr State combine(State a, State b) { return a + b; }
};

// The first of equal elements wins; a NaN wins over numbers.
template <class T, bool is_largest>
struct Place : Reduction<T, Over::Element> {
  static constexpr bool ordered = true;
  static constexpr bool largest = is_largest;
  using State = Pair<T, int64_t>;  // the value and its index, -1: nothing yet
  static constexpr bool beats(const State& x, const State& y) {
    if (x.second < 0 || y.second < 0) {
      return y.second < 0 && x.second >= 0;
    }
    const bool x_nan = x.first != x.first;
    const bool y_nan = y.first != y.first;
    if (x_nan || y_nan) {
      return x_nan && (!y_nan || x.second < y.second);
    }
    const bool better = largest ? x.first > y.first : x.first < y.first;
    return better || (x.first == y.first && x.second < y.second);
  }
  static constexpr State identity() { return {T(), -1}; }
  static constexpr State step(State s, T x, int64_t index) { return combine(s, {x, index}); }
  static constexpr State combine(State a, State b) { return beats(b, a) ? b : a; }
};
template <class T>
using Largest = Place<T, true>;
template <class T>
using Smallest = Place<T, false>;
template <class T>
struct ArgMax : Place<T, true> {
  static constexpr int64_t finish(Pair<T, int64_t> s, int64_t) { return s.second; }
};
template <class T>
struct ArgMin : Place<T, false> {
  static constexpr int64_t finish(Pair<T, int64_t> s, int64_t) { return s.second; }
};

template <class T>
struct MinMax : Reduction<T, Over::Element> {
  using State = Pair<T, T>;
  static constexpr State identity() { return {Min<T>::identity(), Max<T>::identity()}; }
  static constexpr State step(State s, T x, int64_t) { return combine(s, {x, x}); }
  static constexpr State combine(State a, State b) {
    return {Min<T>::combine(a.first, b.first), Max<T>::combine(a.second, b.second)};
  }
};

// Running ones alone: log(exp(a) + exp(b)).
template <class T>
struct LogAddExp : Reduction<T> {
  static constexpr bool widens = false;
  static constexpr T identity() { return -math::infinity<T>; }
  RL_INLINE static T combine(T a, T b) {
    const T high = Max<T>::combine(a, b);
    const T low = a > b ? b : a;
    if (high != high || high - low != high - low) {  // NaN, or infinities of one sign
      return high;
    }
    return high + math::log1p(math::exp(low - high));
  }
};
template <class T>
struct LogAddExp<complex<T>> : Reduction<complex<T>> {
  using type = complex<T>;
  static constexpr bool widens = false;
  static constexpr type identity() { return {-math::infinity<T>, T(0)}; }
  RL_INLINE static type combine(type a, type b) {
    const bool above = a.re > b.re || a.re != a.re;  // by real parts
    const type high = above ? a : b;
    const type low = above ? b : a;
    if (high.re == low.re && math::abs(high.re) == math::infinity<T>) {
      return high.re < 0 ? a : math::log(math::exp(a) + math::exp(b));
    }
    return high + math::log1p(math::exp(low - high));
  }
};

// The largest element and the sum of exp(x - it); an infinite largest element is not subtracted.
template <class T>
struct LogSumExp : Reduction<T> {
  static constexpr bool calls = true;
  struct State {
    T top;
    T sum;
  };
  static constexpr T shift(T top) { return top - top == 0 ? top : T(0); }
  static constexpr State identity() { return {-math::infinity<T>, 0}; }
  RL_INLINE static State step(State s, T x, int64_t) {
    return combine(s, {x, math::exp(x - shift(x))});
  }
  RL_INLINE static State combine(State a, State b) {
    const T top = Max<T>::combine(a.top, b.top);
    const T base = shift(top);
    const T from_a = a.sum == 0 ? T(0) : a.sum * math::exp(shift(a.top) - base);
    const T from_b = b.sum == 0 ? T(0) : b.sum * math::exp(shift(b.top) - base);
    return {top, from_a + from_b};
  }
  RL_INLINE static T finish(State s, int64_t) { return math::log(s.sum) + shift(s.top); }
};

}  // namespace rushlight::fold
