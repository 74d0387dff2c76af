// Pointwise kernels that choose between formulas or check their operands first; ops/pointwise.py
// marks them manual=("kernel",). All others are generated from their formula alone.
#include <cmath>
#include <limits>

#include "cpu/isa/pointwise/loops.h"
#include "cpu/pointwise_checks.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu::RL_ISA {

namespace {

#define RL_KERNEL(formula_name, inputs, attributes, dtypes)                         \
  constexpr PointwiseKernel formula_name##_kernel =                                 \
      make_kernel<inputs, attributes, static_cast<uint32_t>(dtypes), Promote::Same, \
                  rounds_once(#formula_name)>(                                      \
          [](auto... x) __attribute__((always_inline)) { return formula::formula_name(x...); });
RL_FOR_EACH_CHOICE(RL_KERNEL)
RL_KERNEL(clamp_bounded, 1, 2, set_real)
#undef RL_KERNEL

// `where` moves elements of 1, 2, 4, 8 or 16 bytes.
template <class T>
void where_block(char* out, const char* const* in, const void*, int64_t n) {
  const auto* condition = reinterpret_cast<const uint8_t*>(in[0]);
  const auto* yes = reinterpret_cast<const T*>(in[1]);
  const auto* no = reinterpret_cast<const T*>(in[2]);
  auto* o = reinterpret_cast<T*>(out);
  n &= -granule_of(sizeof(T), 1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T a = yes[i];
    const T b = no[i];
    o[i] = condition[i] != 0 ? a : b;
  }
}

constexpr PointwiseKernel make_where_kernel() {
  PointwiseKernel kernel{Promote::Rest, 3, 0, true, {}, {}};
  for (int t = 0; t < num_dtypes; ++t) {
    visit_size(itemsize(static_cast<ScalarType>(t)),
               [&](auto tag) { kernel.blocks[t] = where_block<typename decltype(tag)::type>; });
  }
  return kernel;
}
constexpr PointwiseKernel where_kernel = make_where_kernel();

// x[i] - trunc(x[i] / y[i]) * y[i] for one granule, without rounding, where that takes one quotient
// of fewer bits than the arithmetic has; false where it does not.
template <class T>
bool quick_rests(const T* __restrict x, const T* __restrict y, T* __restrict rests) {
  constexpr int64_t step = granule_of(sizeof(T), sizeof(T));
#if !defined(__FMA__)
  if (sizeof(T) == sizeof(double)) {
    return false;  // the product is not exact
  }
#endif
  constexpr double limit = sizeof(T) == sizeof(double) ? 0x1p52 : 0x1p29;
  int64_t slow = 0;
  for (int64_t i = 0; i < step; i++) {
    const double a = math::abs(static_cast<double>(x[i]));
    const double b = math::abs(static_cast<double>(y[i]));
    const double ratio = a / b;
    const double whole = math::trunc(ratio);
    const double r = sizeof(T) == sizeof(double) ? math::fused(-whole, b, a) : a - whole * b;
    const double above = r < 0 ? r + b : r;
    rests[i] = math::copysign(static_cast<T>(above), x[i]);
    slow += (ratio < limit) & (b < math::infinity<double>) ? 0 : 1;  // NaN is slow
  }
  return slow == 0;
}

// A formula of two numbers and their remainder, which is exact and so the same in either way.
template <class T, class F>
void rest_block(char* out, const char* const* in, const void*, int64_t n) {
  constexpr int64_t step = granule_of(sizeof(T), sizeof(T));
  for (int64_t i = 0; i + step <= n; i += step) {
    const T* x = reinterpret_cast<const T*>(in[0]) + i;
    const T* y = reinterpret_cast<const T*>(in[1]) + i;
    T* o = reinterpret_cast<T*>(out) + i;
    T rests[step];
    if (!quick_rests(x, y, rests)) {
      for (int64_t j = 0; j < step; j++) {
        rests[j] = std::fmod(x[j], y[j]);
      }
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < step; j++) {
      o[j] = F{}(x[j], y[j], rests[j]);
    }
  }
}

template <class F>
constexpr PointwiseKernel with_rests(PointwiseKernel kernel, F) {
  for (const ScalarType t : {kHalf, kBFloat16, kFloat32}) {
    kernel.blocks[static_cast<int>(t)] = &rest_block<float, F>;
  }
  kernel.blocks[static_cast<int>(kFloat64)] = &rest_block<double, F>;
  return kernel;
}
constexpr PointwiseKernel floor_divide_with_rests = with_rests(
    floor_divide_kernel, [](auto x, auto y, auto r) { return math::div_floor(x, y, r); });
constexpr PointwiseKernel remainder_with_rests =
    with_rests(remainder_kernel, [](auto x, auto y, auto r) { return math::rem_floor(x, y, r); });
constexpr PointwiseKernel fmod_with_rests =
    with_rests(fmod_kernel, [](auto, auto, auto r) { return r; });

void run(const TensorIterator& it, const PointwiseKernel& plain) { run_pointwise(it, plain); }

void run_scaled(const TensorIterator& it, const Scalar& factor, const char* name,
                const PointwiseKernel& plain, const PointwiseKernel& scaled) {
  if (factor.is_integral() && factor.as<int64_t>() == 1) {
    run_pointwise(it, plain);
    return;
  }
  check_factor(it, factor, name);
  const Scalar* const attributes[] = {&factor};
  run_pointwise(it, scaled, attributes);
}

}  // namespace

void add(TensorIterator& it, const Scalar& alpha) {
  run_scaled(it, alpha, "alpha", add_kernel, add_scaled_kernel);
}
void sub(TensorIterator& it, const Scalar& alpha) {
  check_no_bool(it);
  run_scaled(it, alpha, "alpha", sub_kernel, sub_scaled_kernel);
}
void rsub(TensorIterator& it, const Scalar& alpha) {
  check_no_bool(it);
  run_scaled(it, alpha, "alpha", rsub_kernel, rsub_scaled_kernel);
}
void neg(TensorIterator& it) {
  check_no_bool(it);
  run(it, neg_kernel);
}
void addcmul(TensorIterator& it, const Scalar& value) {
  run_scaled(it, value, "value", addcmul_plain_kernel, addcmul_kernel);
}
void addcdiv(TensorIterator& it, const Scalar& value) {
  check_true_division(it);
  run_scaled(it, value, "value", addcdiv_plain_kernel, addcdiv_kernel);
}

void lerp(TensorIterator& it) {
  check_one_dtype(it);
  run(it, lerp_kernel);
}
void _clamp(TensorIterator& it) {
  if (it.is_scalar(2) && it.is_scalar(3)) {
    const Scalar low = scalar_operand(it, 2);
    const Scalar high = scalar_operand(it, 3);
    if (!is_nan(low) && !is_nan(high)) {
      const Scalar* const attributes[] = {&low, &high};
      return run_pointwise(it, clamp_bounded_kernel, attributes);
    }
  }
  run(it, clamp_kernel);
}
void _where(TensorIterator& it) { run(it, where_kernel); }

void _div_trunc(TensorIterator& it) {
  check_divisor(it);
  run(it, div_trunc_kernel);
}
void floor_divide(TensorIterator& it) {
  check_divisor(it);
  run(it, floor_divide_with_rests);
}
void remainder(TensorIterator& it) {
  check_divisor(it);
  run(it, remainder_with_rests);
}
void nextafter(TensorIterator& it) {
  const ScalarType t = it.common_dtype();
  run(it, t == kHalf ? next_half_kernel : t == kBFloat16 ? next_bfloat16_kernel : nextafter_kernel);
}
void fmod(TensorIterator& it) {
  check_divisor(it);
  run(it, fmod_with_rests);
}

// Small constant powers have formulas of their own, which are exact where powf is not.
void pow(TensorIterator& it) {
  const ScalarType t = it.common_dtype();
  if (it.is_scalar(2) && it.numel() != 0) {
    const double power = checked_power(it);
    if (power == 2) {
      return run(it, square_kernel);
    }
    if (power == 3) {
      return run(it, cube_kernel);
    }
    if (is_floating(t) && power == 0.5) {
      return run(it, sqrt_kernel);
    }
    if (is_floating(t) && power == -0.5) {
      return run(it, rsqrt_kernel);
    }
    if (is_differentiable(t) && power == -1) {
      return run(it, reciprocal_kernel);
    }
    if (is_differentiable(t) && power == -2) {
      return run(it, inverse_square_kernel);
    }
  }
  run(it, pow_kernel);
}

void round_decimals(TensorIterator& it, int64_t decimals) {
  if (decimals == 0) {
    return run(it, round_kernel);
  }
  if (!is_floating(it.common_dtype())) {
    dtype_not_implemented("round", it.common_dtype());
  }
  const Scalar scale(::pow(10.0, std::abs(static_cast<double>(decimals))));
  const Scalar* const attributes[] = {&scale};
  run_pointwise(it, decimals > 0 ? round_decimals_kernel : round_tens_kernel, attributes);
}

void gelu(TensorIterator& it, std::string_view approximate) {
  run(it, approximate == "tanh" ? gelu_tanh_kernel : gelu_erf_kernel);
}
void gelu_backward(TensorIterator& it, std::string_view approximate) {
  run(it, approximate == "tanh" ? gelu_tanh_backward_kernel : gelu_erf_backward_kernel);
}

void _nan_to_num(TensorIterator& it, std::optional<double> nan, std::optional<double> posinf,
                 std::optional<double> neginf) {
  double largest = 0;
  switch (it.common_dtype()) {
    case kFloat16:
      largest = 65504.0;
      break;
    case kBFloat16:
      largest = 0x1.fep127;
      break;
    case kFloat32:
      largest = std::numeric_limits<float>::max();
      break;
    default:
      largest = std::numeric_limits<double>::max();
      break;
  }
  const Scalar values[] = {nan.value_or(0.0), posinf.value_or(largest), neginf.value_or(-largest)};
  const Scalar* const attributes[] = {&values[0], &values[1], &values[2]};
  run_pointwise(it, nan_to_num_kernel, attributes);
}

}  // namespace rushlight::cpu::RL_ISA
