// The formulas of the pointwise ops, for every dtype, instruction set and device: scalar and
// branch-free, so that loops over them vectorise. T is the compute type (float for the 16-bit
// floats); attributes arrive in it too. Formulas whose meaning differs for complex numbers say so
// with `if constexpr`. A new op is one RL_FORMULA(name, inputs..., attributes...) here and its
// entry in ops/pointwise.py.
#pragma once

#include "kernels/math.h"

#define RL_TYPED_1(a) T a
#define RL_TYPED_2(a, b) T a, T b
#define RL_TYPED_3(a, b, c) T a, T b, T c
#define RL_TYPED_4(a, b, c, d) T a, T b, T c, T d
#define RL_TYPED_5(a, b, c, d, e) T a, T b, T c, T d, T e
#define RL_TYPED_6(a, b, c, d, e, f) T a, T b, T c, T d, T e, T f
#define RL_PICK(_1, _2, _3, _4, _5, _6, name, ...) name
#define RL_TYPED(...)                                                              \
  RL_PICK(__VA_ARGS__, RL_TYPED_6, RL_TYPED_5, RL_TYPED_4, RL_TYPED_3, RL_TYPED_2, \
          RL_TYPED_1, )(__VA_ARGS__)
#define RL_FORMULA(name, ...) \
  template <class T>          \
  RL_INLINE auto name(RL_TYPED(__VA_ARGS__))

namespace rushlight::formula {

// ---- arithmetic ----

RL_FORMULA(add, x, y) { return math::add(x, y); }
RL_FORMULA(add_scaled, x, y, alpha) { return math::mul_add(alpha, y, x); }
RL_FORMULA(sub, x, y) { return math::sub(x, y); }
RL_FORMULA(sub_scaled, x, y, alpha) { return math::mul_add(math::neg(alpha), y, x); }
RL_FORMULA(rsub, x, y) { return math::sub(y, x); }
RL_FORMULA(rsub_scaled, x, y, alpha) { return math::mul_add(math::neg(alpha), x, y); }
RL_FORMULA(mul, x, y) { return math::mul(x, y); }
RL_FORMULA(div, x, y) { return x / y; }
RL_FORMULA(div_trunc, x, y) { return math::div_trunc(x, y); }
RL_FORMULA(floor_divide, x, y) { return math::div_floor(x, y); }
RL_FORMULA(fmod, x, y) { return math::rem_trunc(x, y); }
RL_FORMULA(remainder, x, y) { return math::rem_floor(x, y); }
RL_FORMULA(pow, x, y) { return math::pow(x, y); }
RL_FORMULA(square, x) { return math::mul(x, x); }
RL_FORMULA(cube, x) { return math::mul(math::mul(x, x), x); }
RL_FORMULA(inverse_square, x) { return T(1) / (x * x); }
RL_FORMULA(neg, x) { return math::neg(x); }
RL_FORMULA(reciprocal, x) { return T(1) / x; }
RL_FORMULA(addcmul, x, a, b, value) { return math::mul_add(math::mul(value, a), b, x); }
RL_FORMULA(addcmul_plain, x, a, b) { return math::mul_add(a, b, x); }
RL_FORMULA(addcdiv, x, a, b, value) { return x + value * a / b; }
RL_FORMULA(standardize, x, m, s) { return (x - m) / s; }
RL_FORMULA(addcdiv_plain, x, a, b) { return x + a / b; }
// From the nearer end, so that weights 0 and 1 give the ends exactly.
RL_FORMULA(lerp, x, end, weight) {
  const T difference = end - x;
  const auto size = math::abs(weight);
  const bool low = size < decltype(size)(0.5);
  return math::mul_add(low ? weight : weight - T(1), difference, low ? x : end);
}

// ---- sign and magnitude ----

RL_FORMULA(abs, x) { return math::abs(x); }
RL_FORMULA(sign, x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x;
  } else {
    return static_cast<T>((x > T(0) ? 1 : 0) - (x < T(0) ? 1 : 0));
  }
}
RL_FORMULA(sgn, x) {
  if constexpr (is_complex_v<T>) {
    const real_t<T> size = math::abs(x);
    return size == real_t<T>(0) ? T(0) : T(x.re / size, x.im / size);
  } else {
    return sign(x);
  }
}
RL_FORMULA(_angle, x) {
  if constexpr (is_complex_v<T>) {
    return math::atan2(x.im, x.re);
  } else {
    return x != x ? x : x < T(0) ? T(3.14159265358979323846) : T(0);
  }
}
RL_FORMULA(conj_physical, x) {
  if constexpr (is_complex_v<T>) {
    return T(x.re, -x.im);
  } else {
    return x;
  }
}
RL_FORMULA(copysign, x, y) { return math::copysign(x, y); }
RL_FORMULA(never, x) {  // `signbit` of numbers without a sign
  (void)x;
  return false;
}
RL_FORMULA(signbit, x) {
  if constexpr (std::is_floating_point_v<T>) {
    return math::copysign(T(1), x) < T(0);
  } else {
    return x < T(0);
  }
}
RL_FORMULA(hypot, x, y) { return math::hypot(x, y); }
RL_FORMULA(heaviside, x, y) { return x == T(0) ? y : x > T(0) ? T(1) : T(0); }
RL_FORMULA(nextafter, x, y) { return math::nextafter(x, y); }
// Among the numbers of a 16-bit dtype, of which x is one.
template <class S>
RL_INLINE float next_of(float x, float y) {
  if (x != x || y != y) {
    return x + y;
  }
  S next(x);
  if (x == 0) {
    next.bits = y > 0 ? 1 : 0x8001;
  } else {
    next.bits = static_cast<uint16_t>((x < y) == (x > 0) ? next.bits + 1 : next.bits - 1);
  }
  return x == y ? y : static_cast<float>(next);
}
RL_FORMULA(next_half, x, y) { return next_of<Half>(x, y); }
RL_FORMULA(next_bfloat16, x, y) { return next_of<BFloat16>(x, y); }

// ---- exponentials and logarithms ----

RL_FORMULA(exp, x) { return math::exp(x); }
RL_FORMULA(exp2, x) { return math::exp2(x); }
RL_FORMULA(expm1, x) { return math::expm1(x); }
RL_FORMULA(log, x) { return math::log(x); }
RL_FORMULA(log2, x) { return math::log2(x); }
RL_FORMULA(log10, x) { return math::log10(x); }
RL_FORMULA(log1p, x) { return math::log1p(x); }
RL_FORMULA(sqrt, x) { return math::sqrt(x); }
RL_FORMULA(rsqrt, x) { return T(1) / math::sqrt(x); }
RL_FORMULA(xlogy, x, y) {
  const T product = x * math::log(y);
  return y != y ? y : x == T(0) ? T(0) : product;
}
RL_FORMULA(logaddexp, x, y) {
  if constexpr (is_complex_v<T>) {  // by real parts
    const bool above = x.re > y.re || x.re != x.re;
    const T top = above ? x : y;
    const T low = above ? y : x;
    if (top.re == low.re && math::abs(top.re) == math::infinity<real_t<T>>) {
      return top.re < 0 ? top : math::log(math::exp(x) + math::exp(y));
    }
    return top + math::log1p(math::exp(low - top));
  } else {
    const T high = math::maximum(x, y);
    const T spread = math::log1p(math::exp(-math::abs(x - y)));
    return x == y && math::abs(x) == math::infinity<T> ? x : high + spread;
  }
}
RL_FORMULA(logaddexp2, x, y) {
  const T high = math::maximum(x, y);
  const T spread = math::log1p(math::exp2(-math::abs(x - y))) * T(1.4426950408889634);
  return x == y && math::abs(x) == math::infinity<T> ? x : high + spread;
}
// b^x / (b^x + b^y), where rate is ln b: infinite equals share, but nothing has no share.
RL_FORMULA(_share_of, x, y, rate) {
  const T share = T(1) / (T(1) + math::exp((y - x) * rate));
  if constexpr (is_complex_v<T>) {
    return share;
  } else {
    const T tie = x == -math::infinity<T> ? T(0) : T(0.5);
    return x == y ? tie : share;
  }
}
// exp(x - y) of equals is 1, of infinite ones, too.
RL_FORMULA(_exp_difference, x, y) {
  const T ratio = math::exp(x - y);
  return x == y ? T(1) : ratio;
}
// A product in which a first factor of 0 outweighs infinity.
RL_FORMULA(_weighed, x, y) {
  const T product = x * y;
  return (x == T(0)) & (y == y) ? T(0) : product;
}

// ---- trigonometry ----

RL_FORMULA(sin, x) { return math::sin(x); }
RL_FORMULA(cos, x) { return math::cos(x); }
RL_FORMULA(tan, x) { return math::tan(x); }
RL_FORMULA(asin, x) { return math::asin(x); }
RL_FORMULA(acos, x) { return math::acos(x); }
RL_FORMULA(atan, x) { return math::atan(x); }
RL_FORMULA(atan2, y, x) { return math::atan2(y, x); }
RL_FORMULA(sinh, x) { return math::sinh(x); }
RL_FORMULA(cosh, x) { return math::cosh(x); }
RL_FORMULA(tanh, x) { return math::tanh(x); }
RL_FORMULA(asinh, x) { return math::asinh(x); }
RL_FORMULA(acosh, x) { return math::acosh(x); }
RL_FORMULA(atanh, x) { return math::atanh(x); }
RL_FORMULA(sinc, x) {
  const T t = T(3.14159265358979323846) * x;
  const T ratio = math::sin(t) / t;
  return x == T(0) ? T(1) : ratio;
}

// ---- error function and its like ----

RL_FORMULA(erf, x) { return math::erf(x); }
RL_FORMULA(erfc, x) { return math::erfc(x); }
RL_FORMULA(erfinv, x) { return math::erfinv(x); }
RL_FORMULA(sigmoid, x) { return T(1) / (T(1) + math::exp(-x)); }
RL_FORMULA(_logit, x) { return math::log(x / (T(1) - x)); }

// ---- rounding ----

RL_FORMULA(floor, x) { return math::floor(x); }
RL_FORMULA(ceil, x) { return math::ceil(x); }
RL_FORMULA(trunc, x) { return math::trunc(x); }
RL_FORMULA(round, x) { return math::rint(x); }
RL_FORMULA(frac, x) { return x - math::trunc(x); }
// decimals > 0: scale is 10^decimals; decimals < 0: 10^-decimals. Both are exact.
RL_FORMULA(round_decimals, x, scale) { return math::rint(x * scale) / scale; }
RL_FORMULA(round_tens, x, scale) { return math::rint(x / scale) * scale; }

// ---- classification ----

RL_FORMULA(isnan, x) {
  if constexpr (is_complex_v<T>) {
    return x.re != x.re || x.im != x.im;
  } else {
    return x != x;
  }
}
RL_FORMULA(isinf, x) {
  if constexpr (is_complex_v<T>) {
    return math::abs(x.re) == math::infinity<real_t<T>> ||
           math::abs(x.im) == math::infinity<real_t<T>>;
  } else if constexpr (std::is_floating_point_v<T>) {
    return math::abs(x) == math::infinity<T>;
  } else {
    return false;
  }
}
RL_FORMULA(isfinite, x) {
  if constexpr (is_complex_v<T>) {
    return math::abs(x.re) < math::infinity<real_t<T>> &&
           math::abs(x.im) < math::infinity<real_t<T>>;
  } else if constexpr (std::is_floating_point_v<T>) {
    return math::abs(x) < math::infinity<T>;
  } else {
    return true;
  }
}
RL_FORMULA(isposinf, x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x == math::infinity<T>;
  } else {
    return false;
  }
}
RL_FORMULA(isneginf, x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x == -math::infinity<T>;
  } else {
    return false;
  }
}
RL_FORMULA(nan_to_num, x, for_nan, for_high, for_low) {
  return x != x                    ? for_nan
         : x == math::infinity<T>  ? for_high
         : x == -math::infinity<T> ? for_low
                                   : x;
}

// ---- comparison, logic, bits ----

RL_FORMULA(eq, x, y) { return x == y; }
RL_FORMULA(ne, x, y) { return !(x == y); }
RL_FORMULA(lt, x, y) { return x < y; }
RL_FORMULA(le, x, y) { return x <= y; }
RL_FORMULA(gt, x, y) { return x > y; }
RL_FORMULA(ge, x, y) { return x >= y; }
// Operands of logic are numbers; bitwise & keeps it free of branches.
RL_FORMULA(logical_and, x, y) { return !(x == T(0)) & !(y == T(0)); }
RL_FORMULA(logical_or, x, y) { return !(x == T(0)) | !(y == T(0)); }
RL_FORMULA(logical_xor, x, y) { return !(x == T(0)) != !(y == T(0)); }
RL_FORMULA(logical_not, x) { return x == T(0); }
RL_FORMULA(bitwise_and, x, y) { return x & y; }
RL_FORMULA(bitwise_or, x, y) { return x | y; }
RL_FORMULA(bitwise_xor, x, y) { return x ^ y; }
RL_FORMULA(bitwise_not, x) {
  if constexpr (std::is_same_v<T, bool>) {
    return !x;
  } else {
    return ~x;
  }
}
RL_FORMULA(bitwise_left_shift, x, n) { return math::shift_left(x, n); }
RL_FORMULA(bitwise_right_shift, x, n) { return math::shift_right(x, n); }
RL_FORMULA(maximum, x, y) { return math::maximum(x, y); }
RL_FORMULA(minimum, x, y) { return math::minimum(x, y); }
RL_FORMULA(fmax, x, y) { return math::fmax(x, y); }
RL_FORMULA(fmin, x, y) { return math::fmin(x, y); }
// NaN stays NaN, as a bound too; the upper bound wins over the lower one.
RL_FORMULA(clamp_min, x, low) { return math::maximum(x, low); }
RL_FORMULA(clamp_max, x, high) { return math::minimum(x, high); }
RL_FORMULA(clamp, x, low, high) {
  const T raised = x < low ? low : x;
  const T result = raised > high ? high : raised;
  const T bound = low != low ? low : high;
  return bound != bound ? bound : result;
}
RL_FORMULA(clamp_bounded, x, low, high) {
  return x < low ? (low > high ? high : low) : x > high ? high : x;
}

// ---- activations ----

RL_FORMULA(relu, x) { return x < T(0) ? T(0) : x; }
RL_FORMULA(threshold, x, limit, value) { return x <= limit ? value : x; }
RL_FORMULA(threshold_backward, grad, x, limit) { return x <= limit ? T(0) : grad; }
RL_FORMULA(hardtanh, x, low, high) { return clamp(x, low, high); }
RL_FORMULA(hardtanh_backward, grad, x, low, high) { return x <= low || x >= high ? T(0) : grad; }
RL_FORMULA(leaky_relu, x, slope) { return x > T(0) ? x : x * slope; }
RL_FORMULA(leaky_relu_backward, grad, x, slope) { return x > T(0) ? grad : grad * slope; }
RL_FORMULA(elu, x, alpha, scale, input_scale) {
  const T low = alpha * scale * math::expm1(x * input_scale);
  return x < T(0) ? low : x * scale;
}
RL_FORMULA(elu_backward, grad, x, alpha, scale, input_scale) {
  const T low = grad * input_scale * alpha * scale * math::exp(x * input_scale);
  return x <= T(0) ? low : grad * scale;
}
// Factors that vanish or tend to 1 are exactly 0 and 1 beyond 1e4 and its negative, so that x may
// stop there where it meets them: its infinity would make NaN of 0.
RL_FORMULA(clamp_far_below, x) { return x < T(-1e4) ? T(-1e4) : x; }
RL_FORMULA(clamp_to_limit, x) { return clamp_bounded(x, T(-1e4), T(1e4)); }
RL_FORMULA(gelu_erf, x) {
  return clamp_far_below(x) * T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440)));
}
RL_FORMULA(gelu_tanh, x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * clamp_far_below(x) * (T(1) + math::tanh(inner));
}
RL_FORMULA(gelu_erf_backward, grad, x) {
  const T cdf = T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440)));
  const T pdf = math::exp(T(-0.5) * x * x) * T(0.39894228040143267794);
  return grad * (cdf + (pdf == T(0) ? T(0) : x * pdf));
}
RL_FORMULA(gelu_tanh_backward, grad, x) {
  const T t = math::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
  const T inner_slope = T(0.79788456080286535588) * (T(1) + T(3) * T(0.044715) * x * x);
  const T rest = T(1) - t * t;
  const T steep = T(0.5) * x * rest * inner_slope;
  return grad * (T(0.5) * (T(1) + t) + (rest == T(0) ? T(0) : steep));
}
RL_FORMULA(silu, x) {
  if constexpr (is_complex_v<T>) {
    return x / (T(1) + math::exp(-x));
  } else {
    return clamp_far_below(x) / (T(1) + math::exp(-x));
  }
}
RL_FORMULA(_swiglu, x, y) { return silu(x) * y; }
RL_FORMULA(silu_backward, grad, x) {
  const T s = sigmoid(x);
  if constexpr (is_complex_v<T>) {
    const T slope = s * (T(1) + x * (T(1) - s));
    return grad * T(slope.re, -slope.im);
  } else {
    return grad * s * (T(1) + clamp_to_limit(x) * (T(1) - s));
  }
}
RL_FORMULA(mish, x) { return clamp_far_below(x) * math::tanh(math::log1p(math::exp(x))); }
RL_FORMULA(mish_backward, grad, x) {
  const T t = math::tanh(math::log1p(math::exp(x)));
  return grad * (t + clamp_to_limit(x) * sigmoid(x) * (T(1) - t * t));
}
RL_FORMULA(_softsign, x) {
  const T size = math::abs(x);
  const T ratio = x / (T(1) + size);
  return size == math::infinity<T> ? math::copysign(T(1), x) : ratio;
}
RL_FORMULA(softplus, x, beta, limit) {
  const T low = math::log1p(math::exp(x * beta)) / beta;
  return x * beta > limit ? x : low;
}
RL_FORMULA(softplus_backward, grad, x, beta, limit) {
  const T low = grad * sigmoid(x * beta);
  return x * beta > limit ? grad : low;
}
RL_FORMULA(log_sigmoid, x) {
  return math::minimum(x, T(0)) - math::log1p(math::exp(-math::abs(x)));
}
RL_FORMULA(hardswish, x) {
  const T y = x < T(-3) ? T(-3) : x;  // large ones would overflow before the division
  return y >= T(3) ? y : y * clamp_bounded(y + T(3), T(0), T(6)) / T(6);
}
RL_FORMULA(hardswish_backward, grad, x) {
  return x <= T(-3) ? T(0) : x < T(3) ? grad * (x / T(3) + T(0.5)) : grad;
}
RL_FORMULA(hardsigmoid, x) { return clamp_bounded(x + T(3), T(0), T(6)) / T(6); }
RL_FORMULA(hardsigmoid_backward, grad, x) { return x > T(-3) && x < T(3) ? grad / T(6) : T(0); }
RL_FORMULA(hardshrink, x, lambd) { return x >= -lambd && x <= lambd ? T(0) : x; }
RL_FORMULA(hardshrink_backward, grad, x, lambd) { return x >= -lambd && x <= lambd ? T(0) : grad; }
RL_FORMULA(softshrink, x, lambd) {
  return x > lambd ? x - lambd : x < -lambd ? x + lambd : x * T(0);
}
RL_FORMULA(sigmoid_backward, grad, y) {
  if constexpr (is_complex_v<T>) {
    const T slope = y * (T(1) - y);
    return grad * T(slope.re, -slope.im);
  } else {
    return grad * (T(1) - y) * y;
  }
}
RL_FORMULA(tanh_backward, grad, y) {
  if constexpr (is_complex_v<T>) {
    const T slope = T(1) - y * y;
    return grad * T(slope.re, -slope.im);
  } else {
    return grad * (T(1) - y * y);
  }
}

// ---- losses, before their reduction ----

RL_FORMULA(_squared_error, x, y) {
  const T d = x - y;
  return d * d;
}
RL_FORMULA(_smooth_l1, x, y, beta) {
  const T d = math::abs(x - y);
  return d < beta ? T(0.5) * d * d / beta : d - T(0.5) * beta;
}
RL_FORMULA(_smooth_l1_slope, x, y, beta) {
  const T d = x - y;
  return d <= -beta ? T(-1) : d >= beta ? T(1) : d / beta;
}
RL_FORMULA(_huber, x, y, delta) {
  const T d = math::abs(x - y);
  return d <= delta ? T(0.5) * d * d : delta * (d - T(0.5) * delta);
}
RL_FORMULA(_huber_slope, x, y, delta) { return clamp_bounded(x - y, -delta, delta); }
RL_FORMULA(_bce, x, y) {
  const T log_x = math::maximum(math::log(x), T(-100));
  const T log_rest = math::maximum(math::log1p(-x), T(-100));
  return (y - T(1)) * log_rest - y * log_x;
}
RL_FORMULA(_bce_backward, grad, x, y) {
  return grad * (x - y) / math::maximum((T(1) - x) * x, T(1e-12));
}
RL_FORMULA(_bce_with_logits, x, y) {
  const T weight = (x > T(0) ? T(1) : T(0)) - y;  // 0 outweighs an infinite x
  return _weighed(weight, x) + math::log1p(math::exp(-math::abs(x)));
}
// Of large logits sigmoid is 1 less what counts.
RL_FORMULA(_bce_with_logits_backward, grad, x, y) {
  const T small = sigmoid(-math::abs(x));
  return grad * (x > T(0) ? (T(1) - y) - small : small - y);
}

}  // namespace rushlight::formula
