// Special functions that are written over others, and the contract of frexp, the one that is no
// formula.
#include <cmath>

#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace shape {

OutSpecs<2> frexp(Tensor& self) {
  RL_CHECK(is_floating(self.dtype()), "torch.frexp() only supports floating-point dtypes");
  return {OutSpec{self.sizes(), self.dtype()}, OutSpec{self.sizes(), kInt32}};
}

}  // namespace shape

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
  RL_CHECK(p >= 1, "p has to be greater than or equal to 1");
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
           enum_name(to_floating(self.dtype())), " can't be cast to the desired output type ",
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

Tensor ldexp(const Tensor& self, const Tensor& other) {
  return (self * rushlight::pow(Scalar(2.0), other)).to(to_floating(result_type({self, other})));
}

Tensor& ldexp_(const Tensor& self, const Tensor& other) {
  return self.mul_(rushlight::pow(Scalar(2.0), other));
}

}  // namespace composite
}  // namespace rushlight
