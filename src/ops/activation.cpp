// Composites of the activation family and its derivatives that are longer than a line.
#include <rushlight/ops.h>

#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/pointwise_choice.h"

namespace rushlight {

// ---- derivatives ----

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

constexpr double selu_alpha = 1.6732632423543772848170429916717;
constexpr double selu_scale = 1.0507009873554804934193349852946;

double reciprocal_of(const Scalar& alpha) {
  const double a = alpha.as<double>();
  RL_CHECK(a != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return 1 / a;
}

}  // namespace

namespace composite {

Tensor relu6(const Tensor& self) { return rushlight::hardtanh(self, 0, 6); }
Tensor& relu6_(const Tensor& self) { return rushlight::hardtanh_(self, 0, 6); }
Tensor selu(const Tensor& self) { return rushlight::elu(self, selu_alpha, selu_scale); }
Tensor& selu_(const Tensor& self) { return rushlight::elu_(self, selu_alpha, selu_scale); }
Tensor celu(const Tensor& self, const Scalar& alpha) {
  return rushlight::elu(self, alpha, 1, reciprocal_of(alpha));
}
Tensor& celu_(const Tensor& self, const Scalar& alpha) {
  return rushlight::elu_(self, alpha, 1, reciprocal_of(alpha));
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

}  // namespace composite

}  // namespace rushlight
