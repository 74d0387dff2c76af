// Special functions that are written over others, and the contract of frexp, the one that is no
// formula.
#include <cmath>
#include <numbers>

#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/moderate.h"

namespace rushlight {

namespace shape {

OutSpecs<2> frexp(Tensor& self) {
  RL_CHECK(is_floating(self.dtype()), "torch.frexp() only supports floating-point dtypes");
  return {OutSpec{self.sizes(), self.dtype()}, OutSpec{self.sizes(), kInt32}};
}

}  // namespace shape

// ---- derivatives ----

Tensor erfcx_slope(const Tensor& self, const Tensor& result) {
  // What the difference leaves of two equal numbers is given by the asymptotic series.
  const double begins = self.dtype() == kFloat64 ? 12 : 6;
  constexpr double constant = std::numbers::inv_sqrtpi * 2;
  if (are_moderate(self.clamp_min(0), {0, begins})) {
    return 2 * self * result - constant;
  }
  const Tensor far = self >= begins;
  const Tensor z = 0.5 * where(far, self, begins).reciprocal().square();
  Tensor series = 1 - 19 * z;
  for (int odd = 17; odd > 1; odd -= 2) {
    series = 1 - odd * z * series;
  }
  const Tensor near = 2 * where(far, 0, self) * where(far, 0, result) - constant;
  return where(far, -constant * z * series, near);
}

Tensor log_ndtr_slope(const Tensor& self, const Tensor& result) {
  // The density over the distribution function; on the left through erfcx, and far on the left by
  // their series.
  constexpr double far = -1000;
  const Tensor right = self >= 0;
  const Tensor x = self.clamp(0, 40);  // beyond there is no density
  // The result's derivative, too, is wanted of what lies right alone: far on the left it is
  // infinite.
  const Tensor logarithm = GradMode::is_enabled()
                               ? rushlight::special_log_ndtr(where(right, self, 0))
                               : where(right, result, 0);
  const Tensor of_right = (x * x * -0.5 - logarithm).exp() * 0.3989422804014327;
  const Tensor left = self.clamp(far, 0);
  const Tensor of_left = 0.7978845608028654 / special_erfcx(left * -M_SQRT1_2);
  const Tensor slope = where(right, of_right, of_left);
  if (are_moderate(self.clamp_max(0), {0, -far})) {
    return slope;
  }
  const Tensor away = where(self < far, self, far);
  const Tensor y = away.reciprocal();
  const Tensor square = y * y;
  return where(self < far, -away - y * (1 - square * (2 - 10 * square)), slope);
}

namespace {

// i1(x) / x near 0, where i1 / x has no second derivative.
Tensor i1_series(const Tensor& x) {
  const Tensor z = x * x;
  return 0.5 * (1 + z / 8 * (1 + z / 24 * (1 + z / 48 * (1 + z / 80 * (1 + z / 120)))));
}

}  // namespace

Tensor i1_over(const Tensor& self, const Tensor& result) {
  const Tensor near = self.abs() < 0.25;
  return where(near, i1_series(where(near, self, 0)),
               where(near, 0, result) / where(near, 1, self));
}

Tensor i1e_over(const Tensor& self, const Tensor& result) {
  const Tensor near = self.abs() < 0.25;
  const Tensor x = where(near, self, 0);
  return where(near, i1_series(x) * (-x.abs()).exp(),
               where(near, 0, result) / where(near, 1, self));
}

namespace {
Tensor finite_gamma_density(const Tensor& a, const Tensor& x) {
  constexpr double many = 20;
  const auto plain = [](const Tensor& a, const Tensor& x) {
    return (rushlight::xlogy(a - 1, x) - x - a.lgamma()).exp();
  };
  if (are_moderate(a, {0, many})) {
    return plain(a, x);
  }
  // By Stirling's series, without large logarithms that cancel: x = a (1 + mu).
  const Tensor large = a > many;
  const Tensor of = where(large, a, many);
  const Tensor mu = (where(large, x, many) - of) / of;
  const Tensor y = of.reciprocal().square();
  const Tensor rest =
      (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y / 1680))) / of;  // of log gamma(a + 1)
  const Tensor exponent = of * (mu.log1p() - mu) - rest;
  const Tensor divisor = where(large.logical_and(x.ne(0)), x, 1);
  const Tensor series = exponent.exp() * (of * (0.5 / M_PI)).sqrt() / divisor;
  return where(large, series, plain(where(large, 1, a), where(large, 1, x)));
}
}  // namespace

Tensor gamma_density(const Tensor& a, const Tensor& at) {
  const Tensor far = at.isinf();
  const Tensor x = where(far, 1, at);
  return where(far, 0, finite_gamma_density(a, x));
}

namespace composite {

Tensor polygamma(int64_t n, const Tensor& self) {
  RL_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
  return n == 0 ? self.digamma() : rushlight::_polygamma(self, n);
}

Tensor& polygamma_(const Tensor& self, int64_t n) {
  RL_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
  return n == 0 ? self.digamma_() : rushlight::_polygamma_(self, n);
}

namespace {

void check_mvlgamma(const Tensor& self, int64_t p) {
  RL_CHECK(self.dtype() != kBool && !self.is_complex(),
           "The input tensor may not be a boolean or complex tensor.");
  RL_CHECK(p >= 1, "mvlgamma: p has to be 1 or more, not ", p);
}

}  // namespace

Tensor mvlgamma(const Tensor& self, int64_t p) {
  check_mvlgamma(self, p);
  const Tensor x = self.to(to_floating(self.dtype()));
  const Tensor shifts = arange(-static_cast<double>(p) / 2 + 0.5, 0.5, 0.5, x.options());
  const double constant = static_cast<double>(p) * static_cast<double>(p - 1) * std::log(M_PI) / 4;
  return (x.unsqueeze(-1) + shifts).lgamma().sum(-1) + constant;
}

Tensor& mvlgamma_(const Tensor& self, int64_t p) {
  RL_CHECK(is_differentiable(self.dtype()), "mvlgamma: result type ",
           enum_name(to_floating(self.dtype())), " can't be cast to the output's ",
           enum_name(self.dtype()));
  return self.copy_(composite::mvlgamma(self, p));
}

Tensor special_zeta_self_scalar(const Scalar& self, const Tensor& other) {
  return rushlight::special_zeta(make_number(self), other);
}

Tensor special_xlog1py_self_scalar(const Scalar& self, const Tensor& other) {
  return rushlight::special_xlog1py(make_number(self), other);
}

Tensor special_modified_bessel_i0(const Tensor& self) { return self.detach().i0(); }

Tensor special_modified_bessel_i1(const Tensor& self) {
  return rushlight::special_i1(self.detach());
}

#define RL_ALIAS(alias, name) \
  Tensor special_##alias(const Tensor& self) { return rushlight::name(self); }
RL_ALIAS(digamma, digamma)
RL_ALIAS(erf, erf)
RL_ALIAS(erfc, erfc)
RL_ALIAS(erfinv, erfinv)
RL_ALIAS(exp2, exp2)
RL_ALIAS(expit, sigmoid)
RL_ALIAS(expm1, expm1)
RL_ALIAS(gammaln, lgamma)
RL_ALIAS(i0, i0)
RL_ALIAS(log1p, log1p)
RL_ALIAS(psi, digamma)
RL_ALIAS(sinc, sinc)
#undef RL_ALIAS
Tensor special_gammainc(const Tensor& self, const Tensor& other) {
  return rushlight::igamma(self, other);
}
Tensor special_gammaincc(const Tensor& self, const Tensor& other) {
  return rushlight::igammac(self, other);
}
Tensor special_logit(const Tensor& self, std::optional<double> eps) { return self.logit(eps); }
Tensor special_logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return self.logsumexp(dim, keepdim);
}
Tensor special_multigammaln(const Tensor& self, int64_t p) { return self.mvlgamma(p); }
Tensor special_polygamma(int64_t n, const Tensor& self) { return rushlight::polygamma(n, self); }
Tensor special_round(const Tensor& self, int64_t decimals) {
  return rushlight::round(self, decimals);
}
Tensor special_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return self.log_softmax(dim, dtype);
}
Tensor special_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return self.softmax(dim, dtype);
}
Tensor special_xlogy(const Tensor& self, const Tensor& other) {
  return rushlight::xlogy(self, other);
}
Tensor special_xlogy_self_scalar(const Scalar& self, const Tensor& other) {
  return rushlight::xlogy(make_number(self), other);
}

Tensor special_ndtr(const Tensor& self) { return (self * -M_SQRT1_2).erfc() * 0.5; }

// By three powers of 2 that are finite where the product is.
Tensor ldexp(const Tensor& self, const Tensor& other) {
  if (other.is_complex()) {
    const ScalarType dtype = to_floating(result_type({self, other}));
    return (self * rushlight::pow(Scalar(2.0), other)).to(dtype);
  }
  // The bounds have no place in small integers, and large ones are no int64.
  const int64_t most = 2200;
  Tensor exponent =
      other.is_floating_point() ? other : other.to(kFloat64).clamp(-most, most).to(kInt64);
  const ScalarType dtype = to_floating(result_type({self, exponent}));
  exponent = to_real(dtype) == kFloat64 ? exponent.clamp(-most, most) : exponent.clamp(-380, 380);
  Tensor whole = self;
  if (other.is_floating_point()) {  // an infinite exponent makes one factor, which 0 and inf meet
    const Tensor infinite = other.isinf();
    whole = self * rushlight::pow(Scalar(2.0), other.masked_fill(infinite.logical_not(), 0));
    exponent = exponent.masked_fill(infinite, 0);
  }
  const Tensor part = exponent.div(Scalar(3), "trunc").detach();
  const Tensor power = rushlight::pow(Scalar(2.0), part);
  return (whole * power * power * rushlight::pow(Scalar(2.0), exponent - part * 2)).to(dtype);
}

Tensor& ldexp_(const Tensor& self, const Tensor& other) {
  const Tensor result = composite::ldexp(before_write(self), other);
  RL_CHECK(can_cast(result.dtype(), self.dtype()), "result type ", enum_name(result.dtype()),
           " can't be cast to the input's ", enum_name(self.dtype()), ": convert it with to()");
  return self.copy_(result);
}

}  // namespace composite
}  // namespace rushlight
