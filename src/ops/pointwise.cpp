// Composites of the pointwise family and its derivatives that are longer than a line.
#include <cmath>

#include "core/iterator.h"
#include "core/refusals.h"
#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/moderate.h"
#include "ops/pointwise_choice.h"

namespace rushlight {

// ---- derivatives ----

Tensor scale_gradient(const Tensor& grad, const Scalar& factor) {
  return factor.equal(1) ? grad : grad * factor;
}

namespace {

bool is_one_number(const Tensor& t) { return t.dim() == 0 && t.impl()->is_wrapped_number(); }

}  // namespace

Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  if (is_one_number(exponent)) {
    const Scalar power = exponent.item();
    if (power.equal(0)) {
      return zeros_like(self);
    }
    // Recorded, a derivative goes on to be one of self, though it be constant: that of any order is
    // asked for, and is zero in the end.
    const bool recorded = GradMode::is_enabled();
    if (power.equal(1)) {
      return recorded ? grad * self.pow(0) : grad;
    }
    if (power.equal(2)) {
      return grad * (recorded ? self.pow(1) * 2 : self * 2).conj();
    }
    const bool whole = power.is_integral(true) && power.as<int64_t>() != INT64_MIN;
    const Scalar less = whole ? Scalar(power.as<int64_t>() - 1)
                        : power.is_complex()
                            ? Scalar(power.as<complex<double>>() - complex<double>(1))
                            : Scalar(power.as<double>() - 1);
    return grad * (self.pow(less) * power).conj();
  }
  const Tensor slope = exponent * self.pow(exponent - 1);
  return grad * where(exponent.eq(0), 0, slope).conj();
}

Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                             const Tensor& result) {
  // 0 to a positive power is 0 nearby; the logarithm would make it NaN.
  const Tensor flat = is_complex(exponent.dtype()) ? self.eq(0).logical_and(real(exponent).ge(0))
                                                   : self.eq(0).logical_and(exponent.ge(0));
  return grad * (result * where(flat, 1, number_beside(self, result)).log()).conj();
}

Tensor number_beside(const Tensor& t, const Tensor& other) {
  if (!t.impl()->is_wrapped_number()) {
    return t;
  }
  return t.to(contains(set_reduced, other.dtype()) ? kFloat32 : other.dtype(),
              /*non_blocking=*/false, /*copy=*/true);
}

Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (!is_complex(self.dtype())) {
    return zeros_like(self);
  }
  // d sgn = (dz - sgn * Re(conj(sgn) dz)) / |z|
  const Tensor size = self.abs();
  const Tensor along = result * real(result.conj() * grad);
  return where(size.eq(0), 0, (grad - along) / size);
}

Tensor angle_backward(const Tensor& grad, const Tensor& self) {
  if (!is_complex(self.dtype())) {
    return zeros_like(self);
  }
  const Tensor re = real(self);
  const Tensor im = imag(self);
  return rushlight::_complex(-over_square_length(grad, im, re), over_square_length(grad, re, im));
}

Tensor share_of_length(const Tensor& part, const Tensor& length) {
  const Tensor at_zero = length.eq(0);
  const Tensor far = part.isinf();  // all of the length is along it
  if (!forward::is_differentiated(part, length)) {
    return where(far, part.sgn(), (part / length).masked_fill_(at_zero, 0));
  }
  const Tensor share = where(far, 0, part) / length.masked_fill(at_zero.logical_or(far), 1);
  return where(far, part.sgn(), share.masked_fill(at_zero, 0));
}

Tensor over_square_length(const Tensor& grad, const Tensor& part, const Tensor& rest) {
  if (!forward::is_differentiated(grad, part, rest)) {
    const Tensor length = rushlight::hypot(part, rest);
    const Tensor share = (part / length).div_(length);
    return share.masked_fill_(length.eq(0).logical_or_(length.eq(INFINITY)), 0) * grad;
  }
  const Tensor far = part.isinf().logical_or(rest.isinf());
  const Tensor near = where(far, 0, part);
  const Tensor length = rushlight::hypot(near, where(far, 0, rest));
  const Tensor at_zero = length.eq(0);
  const Tensor inverse = length.masked_fill(at_zero, 1).reciprocal().masked_fill(at_zero, 0);
  return rushlight::_weighed(grad * inverse, near) * inverse;
}

Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor no_ratio = self.eq(0).logical_or(self.isinf());
  const Tensor sign = self.sgn() * result.sgn();  // 0 where self is
  return grad * where(no_ratio, sign, result / where(no_ratio, 1, self));
}

Tensor sinc_backward(const Tensor& grad, const Tensor& self) {
  const Tensor t = self * M_PI;
  if (is_complex(self.dtype())) {
    const Tensor square = t * self;  // 0 for the smallest numbers, too
    return grad * where(square.eq(0), 0, (t * t.cos() - t.sin()) / square).conj();
  }
  if (self.dtype() != compute_dtype(self.dtype())) {  // 16 bits hold neither angles nor squares
    return sinc_backward(grad, self.to(kFloat32));
  }
  // Near 0 the series: the difference loses digits there.
  const bool wide = self.dtype() == kFloat64;
  const Tensor near = t.abs() < (wide ? 0.1 : 0.5);
  const Tensor far = where(near, 1, t);
  const Tensor z = where(near, t, 0).square();
  Tensor series = z * (-1.0 / 15120) + 1.0 / 280;
  if (wide) {
    series = series + z * z * (1.0 / 1330560);
  }
  series = (series * z - 0.1) * z + 1;
  const Tensor difference = (far * far.cos() - far.sin()) / (far * far);
  return grad * (where(near, t * series / -3, difference) * M_PI);
}

Tensor square_and_one(const Tensor& self) {
  if (!GradMode::is_enabled() || is_complex(self.dtype())) {
    return self * self + 1;
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Tensor far = self.isinf();
  const Tensor near = where(far, 0, self);
  return where(far, infinity, near * near + 1);
}

Tensor normal_factor(const Tensor& self) {
  constexpr double far = 1e4;  // beyond which it is 0
  const Tensor x = GradMode::is_enabled() ? self.clamp(-far, far) : self;
  return (-(x * x)).exp();
}

Tensor asinh_slope(const Tensor& self) {
  const double large = self.dtype() == kFloat64 ? 1e150 : self.dtype() == kFloat16 ? 1e2 : 1e15;
  if (is_complex(self.dtype()) || are_moderate(self, {0, large})) {
    return (self * self + 1).rsqrt();
  }
  const Tensor far = self.abs() > large;
  const Tensor near = where(far, 0, self);
  return where(far, where(far, self, 1).abs().reciprocal(), (near * near + 1).rsqrt());
}

namespace {

Tensor extremum_backward(const Tensor& grad, const Tensor& chosen, const Tensor& tie) {
  // Where both are equal each gets half.
  return where(tie, grad / 2, where(chosen, grad, 0));
}

}  // namespace

Tensor maximum_backward(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return extremum_backward(grad, self.lt(other).logical_not(), self.eq(other));
}

Tensor minimum_backward(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return extremum_backward(grad, self.gt(other).logical_not(), self.eq(other));
}

// ---- composites ----

namespace {

Tensor as_number(const Scalar& s) { return make_number(s); }

void check_mode(std::string_view mode) {
  RL_CHECK(mode == "trunc" || mode == "floor",
           "div expected rounding_mode to be None, 'trunc' or 'floor', but got '", mode, "'");
}

}  // namespace

namespace composite {

Tensor square(const Tensor& self) { return self.pow(Scalar(2)); }

Tensor& square_(const Tensor& self) { return self.pow_(Scalar(2)); }

Tensor div_mode(const Tensor& self, const Tensor& other,
                std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode.has_value()) {
    return rushlight::div(self, other);
  }
  check_mode(*rounding_mode);
  return *rounding_mode == "floor" ? rushlight::floor_divide(self, other)
                                   : rushlight::_div_trunc(self, other);
}
Tensor& div__mode(const Tensor& self, const Tensor& other,
                  std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode.has_value()) {
    return rushlight::div_(self, other);
  }
  check_mode(*rounding_mode);
  return *rounding_mode == "floor" ? rushlight::floor_divide_(self, other)
                                   : rushlight::_div_trunc_(self, other);
}

Tensor remainder_Scalar_Tensor(const Scalar& self, const Tensor& other) {
  return rushlight::remainder(as_number(self), other);
}
Tensor pow_Scalar(const Scalar& self, const Tensor& exponent) {
  return rushlight::pow(as_number(self), exponent);
}
Tensor float_power(const Tensor& self, const Tensor& exponent) {
  const bool complex_result = is_complex(self.dtype()) || is_complex(exponent.dtype());
  const ScalarType t = complex_result ? kComplexDouble : kFloat64;
  return rushlight::pow(self.to(t),
                        exponent.impl()->is_wrapped_number() ? exponent : exponent.to(t));
}
Tensor float_power_Scalar(const Scalar& self, const Tensor& exponent) {
  return rushlight::float_power(as_number(self), exponent);
}
Tensor positive(const Tensor& self) {
  RL_CHECK(self.dtype() != kBool, "positive: a bool tensor is no number");
  return self;
}
Tensor angle(const Tensor& self) {
  return rushlight::_angle(is_differentiable(self.dtype()) ? self : self.to(get_default_dtype()));
}
Tensor conj(const Tensor& self) {
  return is_complex(self.dtype()) ? rushlight::conj_physical(self) : self;
}
Tensor xlogy_Scalar_Self(const Scalar& self, const Tensor& other) {
  return rushlight::xlogy(as_number(self), other);
}
Tensor deg2rad(const Tensor& self) {
  RL_CHECK(!self.is_complex(), "deg2rad is not supported for complex tensors.");
  return self * (M_PI / 180);
}
Tensor rad2deg(const Tensor& self) {
  RL_CHECK(!self.is_complex(), "rad2deg is not supported for complex tensors.");
  return self * (180 / M_PI);
}
Tensor logit(const Tensor& self, std::optional<double> eps) {
  return rushlight::_logit(eps.has_value() ? rushlight::clamp(self, Scalar(*eps), Scalar(1 - *eps))
                                           : self);
}
Tensor where_self(const Tensor& condition, const Tensor& self, const Tensor& other) {
  RL_CHECK(condition.dtype() == kBool || condition.dtype() == kUInt8,
           "where expected condition to be a boolean tensor, not one of ",
           enum_name(condition.dtype()));
  for (const Tensor* number : {&self, &other}) {
    if (number->impl()->is_wrapped_number()) {  // it is chosen as it is, not computed with
      number->item().check_fits(result_type({self, other}));
    }
  }
  return rushlight::_where(condition, self, other);
}

}  // namespace composite

// ---- writing ----

void shape::fill_(Tensor& self, Tensor& value) {
  RL_CHECK(value.dim() == 0, "fill_ only supports a 0-dimensional value, not one of shape ",
           value.sizes());
  if (value.impl()->is_wrapped_number()) {
    value.item().check_fits(self.dtype());
  }
  warn_of_lost_parts(value.dtype(), self.dtype());
}
void shape::zero_(Tensor&) {}

namespace cpu {

void fill_(const Tensor& out, const Tensor& value) { fill_raw(out, value.item()); }
void zero_(const Tensor& out) { fill_raw(out, 0); }

}  // namespace cpu

}  // namespace rushlight
