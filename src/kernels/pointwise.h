// The formulas of the pointwise ops, for every dtype, instruction set and device.
#pragma once

#include "kernels/math.h"

#define RL_TYPED_1(a) T a
#define RL_TYPED_2(a, b) T a, T b
#define RL_TYPED_3(a, b, c) T a, T b, T c
#define RL_TYPED_4(a, b, c, d) T a, T b, T c, T d
#define RL_TYPED_5(a, b, c, d, e) T a, T b, T c, T d, T e
#define RL_TYPED_6(a, b, c, d, e, f) T a, T b, T c, T d, T e, T f
#define RL_PICK(_1, _2, _3, _4, _5, _6, name, ...) name
#define RL_TYPED(...) \
  RL_PICK(__VA_ARGS__, RL_TYPED_6, RL_TYPED_5, RL_TYPED_4, RL_TYPED_3, RL_TYPED_2, RL_TYPED_1)(__VA_ARGS__)
#define RL_FORMULA(name, ...) \
  template <class T>          \
  RL_INLINE auto name(RL_TYPED(__VA_ARGS__))

namespace rushlight::formula {

RL_FORMULA(add, x, y, alpha) { return x + alpha * y; }
RL_FORMULA(mul, x, y) { return x * y; }
RL_FORMULA(exp, x) { return math::exp(x); }
RL_FORMULA(tanh, x) { return math::tanh(x); }
RL_FORMULA(lt, x, y) { return x < y; }
RL_FORMULA(relu, x) { return x < 0 ? T(0) : x; }

}  // namespace rushlight::formula
