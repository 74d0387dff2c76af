// What the rules of optimisers (kernels/optim.h) are made of, and how their lists are gone through.
#pragma once

#include <type_traits>
#include <utility>

#include "kernels/math.h"

namespace rushlight::rules {

inline constexpr int max_extra = 3;

// Calls f(k) for the lists that a step touches; k is a constant.
template <class Step, class F>
RL_INLINE void for_lists(const F& f) {
  const auto call = [&](auto k) {
    if constexpr ((Step::lists >> k & 1) != 0) {
      f(k);
    }
  };
  [&]<int... k>(std::integer_sequence<int, k...>) {
    (call(std::integral_constant<int, k>()), ...);
  }(std::make_integer_sequence<int, 5>());
}

// x with the gradient that the penalty weight_decay / 2 * |p|^2 adds.
template <class C>
RL_INLINE C add_weight_decay(C decay, C p, C g) {
  return decay != C(0) ? math::multiply_add(decay, p, g) : g;
}
// A running mean: where the new share is small, from the old value, else from the new one.
template <class C>
RL_INLINE C mean_with(C old, C value, C share) {
  const bool near{share < C(0.5)};
  return near ? old + share * (value - old) : value - (value - old) * (C(1) - share);
}

// Calls f<flag>().
template <class F>
void with_flag(bool flag, const F& f) {
  if (flag) {
    f.template operator()<true>();
  } else {
    f.template operator()<false>();
  }
}

// The lists that a step touches, a bit each.
template <class Rule>
unsigned touched_lists(const Rule& rule) {
  unsigned lists = 0;
  rule.template visit<double>([&]<class Step>(const Step&) { lists = Step::lists; });
  return lists;
}

// The step of a rule that keeps the mean of gradients and that of their squares.
template <class Step, class C, class Rule>
RL_INLINE Step with_moments(const Rule& r) {
  return {C(1 - r.beta1),
          C(r.beta2),
          C(1 - r.beta2),
          C(r.eps),
          C(r.decoupled ? 0 : r.weight_decay),
          C(r.decoupled ? 1 - r.lr * r.weight_decay : 1),
          C(r.maximize ? -1 : 1)};
}

}  // namespace rushlight::rules
