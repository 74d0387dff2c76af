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
    if (power.equal(1)) {
      return grad;
    }
    if (power.equal(2)) {
      return grad * (self * 2).conj();
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
  return grad * (result * where(flat, 1, self).log()).conj();
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
  const double large = self.dtype() == kFloat64 ? 1e150 : 1e15;
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

Tensor elu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                           const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  const Tensor low = (self.clamp_max(0) * input_scale).exp();
  const Tensor curved = grad * grad_output * low * input_scale * input_scale * alpha * scale;
  return where(self.le(0), curved, 0);
}

namespace {

// Beyond a limit slopes of activations are constant: what goes on would only overflow.
Tensor clamp_to_limit(const Tensor& self, double limit) {
  return self.clamp(Scalar(-limit), Scalar(limit));
}

}  // namespace

Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                            std::string_view approximate) {
  const Tensor x = clamp_to_limit(self, 100);
  const Tensor square = x * x;
  if (approximate == "tanh") {
    constexpr double k = 0.79788456080286535588;
    constexpr double c = 0.044715;
    const Tensor t = ((square * x * c + x) * k).tanh();
    const Tensor slope = (square * (3 * c) + 1) * k;
    const Tensor t_slope = (1 - t * t) * slope;
    const Tensor t_curve = (1 - t * t) * (x * (6 * c * k)) - t * t_slope * slope * 2;
    return grad * grad_output * (t_slope + x * t_curve * 0.5);
  }
  const Tensor pdf = (square * -0.5).exp() * 0.39894228040143267794;
  return grad * grad_output * pdf * (2 - square);
}

Tensor silu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self) {
  const Tensor s = self.sigmoid();
  const Tensor x = is_complex(self.dtype()) ? self : clamp_to_limit(self, 1e4);
  return grad.conj() * grad_output * (s * (1 - s) * (2 + x * (1 - s * 2))).conj();
}

Tensor mish_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self) {
  const Tensor s = self.sigmoid();
  const Tensor t = softplus(self).tanh();
  const Tensor t_slope = (1 - t * t) * s;
  const Tensor t_curve = (1 - t * t) * s * (1 - s) - t * t_slope * s * 2;
  return grad * grad_output * (t_slope * 2 + clamp_to_limit(self, 1e4) * t_curve);
}

Tensor softplus_double_backward(const Tensor& grad, const Tensor& self, const Scalar& beta,
                                const Scalar& threshold) {
  const Tensor scaled_self = self * beta;
  const Tensor s = scaled_self.sigmoid();
  return where(scaled_self.gt(threshold), 0, grad * s * (1 - s) * beta);
}

// ---- composites ----

namespace {

Tensor as_number(const Scalar& s) { return make_number(s); }

void check_mode(std::string_view mode) {
  RL_CHECK(mode == "trunc" || mode == "floor",
           "div expected rounding_mode to be None, 'trunc' or 'floor', but got '", mode, "'");
}

// Losses accept any target that broadcasts, but hardly anybody wants that.
void check_target(const char* name, const Tensor& self, const Tensor& target) {
  if (!(self.sizes() == target.sizes())) {
    warn(str("Using a target size (", target.sizes(), ") that is different to the input size (",
             self.sizes(), ") in ", name,
             ": they are broadcast, so that an element is compared with several. Give both the "
             "same size."));
  }
}

void check_clamp(const Tensor& self, bool has_bound) {
  RL_CHECK(has_bound, "clamp has nothing to do: At least one of 'min' or 'max' must not be None");
  RL_CHECK_NOT_IMPLEMENTED(!is_complex(self.dtype()), "clamp is not supported for complex types");
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
Tensor isreal(const Tensor& self) {
  return is_complex(self.dtype()) ? rushlight::imag(self).eq(0)
                                  : ones_like(self, TensorOptions(kBool));
}
Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (is_complex(self.dtype())) {  // each part by itself
    const Tensor parts = rushlight::view_as_real(self);
    return rushlight::view_as_complex(rushlight::_nan_to_num(parts, nan, posinf, neginf));
  }
  return is_floating(self.dtype()) ? rushlight::_nan_to_num(self, nan, posinf, neginf)
                                   : self.clone();
}
Tensor& nan_to_num_(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                    std::optional<double> neginf) {
  if (is_complex(self.dtype())) {
    rushlight::_nan_to_num_(rushlight::view_as_real(self), nan, posinf, neginf);
    return const_cast<Tensor&>(self);
  }
  return is_floating(self.dtype()) ? rushlight::_nan_to_num_(self, nan, posinf, neginf)
                                   : const_cast<Tensor&>(self);
}

#define RL_SCALAR_FIRST(name)                                            \
  Tensor name##_Scalar_Tensor(const Scalar& self, const Tensor& other) { \
    return rushlight::name(as_number(self), other);                      \
  }
RL_SCALAR_FIRST(bitwise_and)
RL_SCALAR_FIRST(bitwise_or)
RL_SCALAR_FIRST(bitwise_xor)
RL_SCALAR_FIRST(bitwise_left_shift)
RL_SCALAR_FIRST(bitwise_right_shift)
#undef RL_SCALAR_FIRST

Tensor clamp(const Tensor& self, const std::optional<Scalar>& min,
             const std::optional<Scalar>& max) {
  check_clamp(self, min.has_value() || max.has_value());
  if (!min.has_value()) {
    return rushlight::clamp_max(self, *max);
  }
  if (!max.has_value()) {
    return rushlight::clamp_min(self, *min);
  }
  return rushlight::_clamp(self, *min, *max);
}
Tensor& clamp_(const Tensor& self, const std::optional<Scalar>& min,
               const std::optional<Scalar>& max) {
  check_clamp(self, min.has_value() || max.has_value());
  if (!min.has_value()) {
    return rushlight::clamp_max_(self, *max);
  }
  if (!max.has_value()) {
    return rushlight::clamp_min_(self, *min);
  }
  return rushlight::_clamp_(self, *min, *max);
}
Tensor clamp_Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  check_clamp(self, min.defined() || max.defined());
  return !min.defined()   ? rushlight::clamp_max(self, max)
         : !max.defined() ? rushlight::clamp_min(self, min)
                          : rushlight::_clamp(self, min, max);
}
Tensor& clamp__Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  check_clamp(self, min.defined() || max.defined());
  return !min.defined()   ? rushlight::clamp_max_(self, max)
         : !max.defined() ? rushlight::clamp_min_(self, min)
                          : rushlight::_clamp_(self, min, max);
}
Tensor clip(const Tensor& self, const std::optional<Scalar>& min,
            const std::optional<Scalar>& max) {
  return rushlight::clamp(self, min, max);
}
Tensor& clip_(const Tensor& self, const std::optional<Scalar>& min,
              const std::optional<Scalar>& max) {
  return rushlight::clamp_(self, min, max);
}
Tensor clip_Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  return rushlight::clamp(self, min, max);
}
Tensor& clip__Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  return rushlight::clamp_(self, min, max);
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

Tensor relu6(const Tensor& self) { return rushlight::hardtanh(self, 0, 6); }
Tensor& relu6_(const Tensor& self) { return rushlight::hardtanh_(self, 0, 6); }
namespace {
constexpr double selu_alpha = 1.6732632423543772848170429916717;
constexpr double selu_scale = 1.0507009873554804934193349852946;

double inverse(const Scalar& alpha) {
  const double a = alpha.as<double>();
  RL_CHECK(a != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return 1 / a;
}
}  // namespace
Tensor selu(const Tensor& self) { return rushlight::elu(self, selu_alpha, selu_scale); }
Tensor& selu_(const Tensor& self) { return rushlight::elu_(self, selu_alpha, selu_scale); }
Tensor celu(const Tensor& self, const Scalar& alpha) {
  return rushlight::elu(self, alpha, 1, inverse(alpha));
}
Tensor& celu_(const Tensor& self, const Scalar& alpha) {
  return rushlight::elu_(self, alpha, 1, inverse(alpha));
}
Tensor softsign(const Tensor& self) {
  return is_floating(self.dtype()) ? rushlight::_softsign(self) : self / (self.abs() + 1);
}
Tensor tanhshrink(const Tensor& self) { return self - self.tanh(); }
Tensor prelu(const Tensor& self, const Tensor& weight) {
  check_dtype("prelu", set_floating, self);
  RL_CHECK(self.dtype() == weight.dtype(), "prelu: Type promoting not supported. Got ",
           enum_name(self.dtype()), " and ", enum_name(weight.dtype()));
  RL_CHECK(weight.dim() <= 1,
           "prelu: Expected `weight` of one number, or of one for each channel, but got one of "
           "dimension ",
           weight.dim());
  if (weight.numel() == 1) {
    return rushlight::where(self.gt(0), self, self * weight.reshape({}));
  }
  RL_CHECK(self.dim() > 0, "Not allow zero-dim input tensor.");
  const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  RL_CHECK(weight.numel() == channels, "prelu: ", weight.numel(), " weights do not go with ",
           channels, " channels: it takes one, or one for each channel");
  DimVector shape(static_cast<size_t>(self.dim()), 1);
  shape[1] = channels;
  return rushlight::where(self.gt(0), self, self * weight.reshape(shape));
}
Tensor glu(const Tensor& self, int64_t dim) {
  check_dtype("glu", set_floating, self);
  RL_CHECK(self.dim() > 0, "glu does not support scalars: it halves a dimension");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t size = self.size(d);
  RL_CHECK(size % 2 == 0, "glu: Halving dimension must be even, not ", size, " as dimension ", d);
  return self.narrow(d, 0, size / 2) * self.narrow(d, size / 2, size / 2).sigmoid();
}

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  check_target("mse_loss", self, target);
  return reduce_losses(rushlight::_squared_error(self, target), reduction);
}
Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  check_target("l1_loss", self, target);
  return reduce_losses((self - target).abs(), reduction);
}
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  check_target("smooth_l1_loss", self, target);
  RL_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  return beta == 0 ? rushlight::l1_loss(self, target, reduction)
                   : reduce_losses(rushlight::_smooth_l1(self, target, beta), reduction);
}
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  check_target("huber_loss", self, target);
  RL_CHECK(delta > 0, "huber_loss does not support non-positive values: delta is ", delta);
  return reduce_losses(rushlight::_huber(self, target, delta), reduction);
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  RL_CHECK(self.dtype() == other.dtype(), enum_name(self.dtype()), " did not match ",
           enum_name(other.dtype()));
  RL_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  RL_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor close = self.eq(other);
  if (equal_nan && is_differentiable(self.dtype())) {
    close = close.logical_or(self.isnan().logical_and(other.isnan()));
  }
  if (rtol == 0 && atol == 0) {
    return close;
  }
  const ScalarType t = self.dtype();
  const bool widen = !is_differentiable(t);
  const Tensor a = widen ? self.to(get_default_dtype()) : self;
  const Tensor b = widen ? other.to(get_default_dtype()) : other;
  const Tensor distance = (a - b).abs();
  return close.logical_or(distance.isfinite().logical_and(distance.le(b.abs() * rtol + atol)));
}
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return rushlight::isclose(self, other, rtol, atol, equal_nan).all().item().toBool();
}
bool equal(const Tensor& self, const Tensor& other) {
  check_same_device("equal", self.device(), other.device());
  if (!(self.sizes() == other.sizes())) {
    return false;
  }
  // Bytes decide only where equal bytes mean equal numbers: not for NaN.
  if (self.is_same(other) && !is_differentiable(self.dtype())) {
    return true;
  }
  return self.numel() == 0 || self.eq(other).all().item().toBool();
}

// Other names.
Tensor logsigmoid(const Tensor& self) { return rushlight::log_sigmoid(self); }
#define RL_ALIAS(alias, name)                                        \
  Tensor alias(const Tensor& self) { return rushlight::name(self); } \
  Tensor& alias##_(const Tensor& self) { return rushlight::name##_(self); }
RL_ALIAS(absolute, abs)
RL_ALIAS(negative, neg)
RL_ALIAS(arccos, acos)
RL_ALIAS(arcsin, asin)
RL_ALIAS(arctan, atan)
RL_ALIAS(arccosh, acosh)
RL_ALIAS(arcsinh, asinh)
RL_ALIAS(arctanh, atanh)
RL_ALIAS(fix, trunc)
#undef RL_ALIAS
#define RL_ALIAS(alias, name)                                                                    \
  Tensor alias(const Tensor& self, const Tensor& other) { return rushlight::name(self, other); } \
  Tensor& alias##_(const Tensor& self, const Tensor& other) {                                    \
    return rushlight::name##_(self, other);                                                      \
  }
RL_ALIAS(multiply, mul)
RL_ALIAS(true_divide, div)
RL_ALIAS(greater, gt)
RL_ALIAS(greater_equal, ge)
RL_ALIAS(less, lt)
RL_ALIAS(less_equal, le)
RL_ALIAS(not_equal, ne)
#undef RL_ALIAS
#define RL_ALIAS(alias, name) \
  Tensor alias(const Tensor& self, const Tensor& other) { return rushlight::name(self, other); }
RL_ALIAS(__and__, bitwise_and)
RL_ALIAS(__or__, bitwise_or)
RL_ALIAS(__xor__, bitwise_xor)
RL_ALIAS(__lshift__, bitwise_left_shift)
RL_ALIAS(__rshift__, bitwise_right_shift)
RL_ALIAS(arctan2, atan2)
#undef RL_ALIAS
Tensor subtract(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return rushlight::sub(self, other, alpha);
}
Tensor& subtract_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return rushlight::sub_(self, other, alpha);
}
Tensor divide(const Tensor& self, const Tensor& other,
              std::optional<std::string_view> rounding_mode) {
  return rushlight::div(self, other, rounding_mode);
}
Tensor& divide_(const Tensor& self, const Tensor& other,
                std::optional<std::string_view> rounding_mode) {
  return rushlight::div_(self, other, rounding_mode);
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
