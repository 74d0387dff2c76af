"""Samples of activations whose inputs need care."""

SAMPLES = {
    "gelu": ["x(3, 4)", "x(3, 4), approximate='tanh'", "x()"],
}
DTYPES = {"hardtanh": "signed"}
REFERENCES = {
    "relu": "np.maximum(self, 0)",
    "relu6": "np.clip(self, 0, 6)",
    "threshold": "np.where(self <= threshold, value, self)",
    "hardtanh": "np.clip(self, min_val, max_val)",
    "leaky_relu": "np.where(self > 0, self, negative_slope * self)",
    "elu": "scale * np.where(self > 0, self, alpha * np.expm1(input_scale * self))",
    "selu": "1.0507009873554805 * np.where(self > 0, self, 1.6732632423543772 * np.expm1(self))",
    "celu": "np.maximum(self, 0) + np.minimum(0, alpha * np.expm1(self / alpha))",
    "gelu": "above(self) * (scipy.special.ndtr(self) if approximate == 'none' else 0.5 + 0.5 * np.tanh(np.sqrt(2 / np.pi) * (self + 0.044715 * self**3)))",
    "silu": "above(self) / (1 + np.exp(-self))",
    "_swiglu": "above(gate) / (1 + np.exp(-gate)) * up",
    "mish": "above(self) * np.tanh(np.log1p(np.exp(self)))",
    "softplus": "np.where(beta * self > threshold, self, np.log1p(np.exp(beta * self)) / beta)",
    "log_sigmoid": "scipy.special.log_expit(self)",
    "hardswish": "above(self) * np.clip(self + 3, 0, 6) / 6",
    "hardsigmoid": "np.clip(self + 3, 0, 6) / 6",
    "hardshrink": "np.where(np.abs(self) <= lambd, 0, self)",
    "softshrink": "np.sign(self) * np.maximum(np.abs(self) - lambd, 0)",
    "softsign": "np.where(np.isinf(self), np.sign(self), self / (1 + np.abs(self)))",
    "tanhshrink": "self - np.tanh(self)",
    "prelu": "np.where(self > 0, self, self * (weight.reshape(-1, *[1] * (self.ndim - 2)) if self.ndim > 1 else weight))",
    "glu": "np.split(self, 2, dim)[0] * scipy.special.expit(np.split(self, 2, dim)[1])",
    # their derivatives
    "threshold_backward": "np.where(self <= threshold, 0, grad_output)",
    "hardtanh_backward": "np.where((self <= min_val) | (self >= max_val), 0, grad_output)",
    "leaky_relu_backward": "grad_output * np.where(self > 0, 1, negative_slope)",
    "elu_backward": "grad_output * scale * np.where(self <= 0, alpha * input_scale * np.exp(input_scale * self), 1)",
    "gelu_backward": "grad_output * (scipy.special.ndtr(self) + within(self) * np.exp(-self * self / 2) / np.sqrt(2 * np.pi))",
    "silu_backward": "grad_output * np.conj((1 + within(self) / (1 + np.exp(self))) / (1 + np.exp(-self)))",
    "mish_backward": "grad_output * (np.tanh(np.log1p(np.exp(self))) + within(self) * scipy.special.expit(self) / np.cosh(np.log1p(np.exp(self)))**2)",
    "softplus_backward": "grad_output * np.where(beta * self > threshold, 1, scipy.special.expit(beta * self))",
    "hardswish_backward": "np.where(self <= -3, 0, np.where(self < 3, grad_output * (self / 3 + 0.5), grad_output))",
    "hardsigmoid_backward": "np.where(np.abs(self) < 3, grad_output / 6, 0)",
    "hardshrink_backward": "np.where(np.abs(self) <= lambd, 0, grad_out)",
    "sigmoid_backward": "grad_output * np.conj(output * (1 - output))",
    "tanh_backward": "grad_output * np.conj(1 - output * output)",
}
ERRORS = {
    "gelu": [("x(2), approximate='erf'", RuntimeError, "approximate argument must be 'none' or 'tanh'")],
    "softshrink": [("x(2), -0.5", RuntimeError, "lambda must be in range"), ("x(2), float('inf')", RuntimeError, "lambda must be in range")],
}
