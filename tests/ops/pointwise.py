"""Samples of pointwise ops: only those whose inputs need care; the others get the usual shapes by themselves."""


def _forms(make):
    return [f"{make}(3, 4)", f"{make}()", f"{make}(0, 2)", f"{make}(37)", f"{make}(2, 1, 5)"]


def _pairs(make, second=None, numbers=True):
    second = second or make
    pairs = [
        f"{make}(3, 4), {second}(3, 4)",
        f"{make}(3, 4), {second}(4)",
        f"{make}(3, 1), {second}(1, 4)",
        f"{make}(), {second}(3)",
        f"{make}(0, 2), {second}(2)",
        f"{make}(37), {second}(37)",
    ]
    return [*pairs, f"{make}(3), 2"] if numbers else pairs


SAMPLES = {name: _forms("pos") for name in ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "digamma", "lgamma")}
SAMPLES |= {"_share_of": ["x(3, 4), x(4), 0.7", "x(), x(), 1.0", "x(37), x(37), 1.0"]}
SAMPLES |= {"log1p": _forms("pos"), "acosh": ["same(1.5, 2.0, 3.0)"], "logit": ["same(0.2, 0.5, 0.9)"]}
SAMPLES |= {name: _forms("unit") for name in ("asin", "acos", "atanh", "erfinv")}
SAMPLES |= {name: _pairs("x", "pos") for name in ("div", "true_divide", "remainder", "fmod", "floor_divide", "_div_trunc")}
SAMPLES |= {"atan2": _pairs("x", "pos", numbers=False), "xlogy": _pairs("pos"), "_logit": ["same(0.2, 0.5, 0.9)"]}
SAMPLES |= {
    "div.mode": [f"x(3, 4), pos(3, 4), rounding_mode={mode!r}" for mode in ("floor", "trunc", None)],
    "pow": [*_pairs("pos")[:5], "x(3), 2", "x(3), 3", "pos(3), 0.5", "pos(3), -1.5"],
    "pow.Scalar": ["2, x(3)"],
    "float_power": ["pos(3), 2", "pos(3), pos(3)"],
    "maximum": _pairs("distinct", "x", numbers=False),
    "minimum": _pairs("distinct", "x", numbers=False),
    "_where": ["mask(3, 4), x(3, 4), x(4)", "mask(), x(2), x(2)"],
    "where.self": ["mask(3, 4), x(3, 4), x(3, 4)", "mask(3, 1), x(4), x(3, 4)", "mask(4), x(3, 4), 0", "mask(), x(2), x(2)"],
    "clamp": ["x(3, 4), -0.5, 0.5", "x(3, 4), min=0", "x(3, 4), max=1", "x(), 0, 1"],
    "clamp_min": ["x(3, 4), 0"],
    "clamp_max": ["x(3, 4), 0"],
    "lerp": ["x(3, 4), x(3, 4), 0.3", "x(3, 4), x(4), x(3, 1)"],
    "addcmul": ["x(3, 4), x(3, 4), x(4)", "x(3), x(3), x(3), value=2"],
    "addcdiv": ["x(3, 4), x(3, 4), pos(4)", "x(3), x(3), pos(3), value=2"],
    "_standardize": ["x(3, 4), x(3, 4), pos(4)", "x(2, 3, 5), x(3, 1), pos(3, 1)"],
    "gelu": ["x(3, 4)", "x(3, 4), approximate='tanh'", "x()"],
    "round": ["x(3, 4)", "same(0.5, 1.5, 2.5, -0.5)"],
    "add": [*_pairs("x"), "x(3), x(3), alpha=2"],
    "sub": [*_pairs("x"), "x(3), x(3), alpha=2"],
    "rsub": ["x(3), x(3)", "x(3), 2"],
    "bitwise_left_shift": ["x(3, low=0, high=5), x(3, low=0, high=3)"],
    "bitwise_right_shift": ["x(3, low=0, high=5), x(3, low=0, high=3)"],
    "square": ["x(3, 4)", "x()", "x(0, 2)", "x(37)"],
    "nan_to_num": ["same(nan, inf, -inf, 1.0)", "same(nan, 2.0), 3.0"],
}
_ALIASES = {"arccos": "acos", "arcsin": "asin", "arctanh": "atanh", "arccosh": "acosh", "true_divide": "div", "divide": "div"}
SAMPLES |= {alias: SAMPLES[name] for alias, name in _ALIASES.items()}
DTYPES = dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "log1p"), "complex")
DTYPES |= {"_where": "all", "square": "all"}
DTYPES |= {"hardtanh": "signed", "where.self": "all", "maximum": "real", "minimum": "real", "round": "floats", "float_power": "floats", "pow": "floats"}
DTYPES |= dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), "integers")
REFERENCES = {name: f"np.{name}(self, other)" for name in ("multiply", "true_divide", "greater", "greater_equal", "less", "less_equal", "not_equal", "arctan2")}
REFERENCES |= {name: f"np.{name}(self)" for name in ("absolute", "negative", "arccos", "arcsin", "arctan", "arccosh", "arcsinh", "arctanh", "fix")}
REFERENCES |= {f"bitwise_{name}.Scalar_Tensor": f"np.bitwise_{name}(self, other)" for name in ("and", "or", "xor")}
REFERENCES |= {f"__{name}__": f"np.bitwise_{name}(self, other)" for name in ("and", "or", "xor")}
REFERENCES |= {f"bitwise_{side}_shift.Scalar_Tensor": f"np.{side}_shift(self, other)" for side in ("left", "right")}
REFERENCES |= {f"__{side[0]}shift__": f"np.{side}_shift(self, other)" for side in ("left", "right")}
REFERENCES |= {name: f"scipy.special.{name}(self)" for name in ("erf", "erfc", "erfinv")}
REFERENCES |= dict.fromkeys(("xlogy", "xlogy.Scalar_Self"), "scipy.special.xlogy(self, other)")
REFERENCES |= dict.fromkeys(("div.mode", "divide"), "quotient(self, other, rounding_mode)")
REFERENCES |= dict.fromkeys(("sub", "subtract"), "self - scaled(other, alpha)")
REFERENCES |= {
    "add": "self + scaled(other, alpha)",
    "rsub": "other - scaled(self, alpha)",
    "_div_trunc": "np.trunc(self / other)",
    "remainder.Scalar_Tensor": "np.remainder(self, other)",
    "pow.Scalar": "np.power(self, exponent)",
    "float_power": "np.float_power(self, exponent)",
    "positive": "self",
    "addcmul": "self + scaled(tensor1 * tensor2, value)",
    "addcdiv": "self + value * tensor1 / tensor2",
    "_standardize": "(self - mean) / std",
    "lerp": "np.where(np.abs(weight) < 0.5, self + weight * (end - self), end - (end - self) * (1 - weight))",
    "sign": "self if self.dtype == bool else np.where(np.isnan(self), 0, np.sign(self))",
    "sgn": "self if self.dtype == bool else np.where(np.isnan(self), 0, np.sign(self))",
    "heaviside": "np.where(self == 0, values, self > 0)",  # NaN counts as not above
    **dict.fromkeys(("_angle", "angle"), "np.angle(self) if self.dtype.kind == 'c' else np.where(self < 0, np.pi, np.where(np.isnan(self), self, 0))"),
    "rsqrt": "1 / np.sqrt(self)",
    "logaddexp": "np.logaddexp(self, other) if self.dtype.kind == 'f' else np.log(np.exp(self) + np.exp(other))",
    "sigmoid": "1 / (1 + np.exp(-self))",
    "_logit": "scipy.special.logit(self)",
    "logit": "scipy.special.logit(self if eps is None else np.clip(self, eps, 1 - eps))",
    "round.decimals": "np.round(self, decimals)",
    "frac": "self - np.trunc(self)",
    "_where": "np.where(condition, self, other)",
    "_clamp": "np.clip(self, min, max)",
    "clamp_min": "np.maximum(self, min)",
    "clamp_max": "np.minimum(self, max)",
    # activations
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
    # losses
    "_squared_error": "(self - target) ** 2",
    "_smooth_l1": "huber(self - target, beta) / beta",
    "_smooth_l1_slope": "np.clip((self - target) / beta, -1, 1)",
    "_huber": "huber(self - target, delta)",
    "_huber_slope": "np.clip(self - target, -delta, delta)",
    "mse_loss": "reduced(np.abs(self - target) ** 2, reduction)",
    "l1_loss": "reduced(np.abs(self - target), reduction)",
    "smooth_l1_loss": "reduced(huber(self - target, beta) / beta, reduction)",
    "huber_loss": "reduced(huber(self - target, delta), reduction)",
}
for _name in ("nan_to_num", "_nan_to_num"):
    REFERENCES[_name] = "np.nan_to_num(self, nan=nan or 0.0, posinf=LARGEST[tested] if posinf is None else posinf, neginf=-LARGEST[tested] if neginf is None else neginf)"
ERRORS = {
    "gelu": [("x(2), approximate='erf'", RuntimeError, "approximate argument must be 'none' or 'tanh'")],
    "softshrink": [("x(2), -0.5", RuntimeError, "lambda must be in range"), ("x(2), float('inf')", RuntimeError, "lambda must be in range")],
    "add": [
        ("x(2, 3), x(2, 4)", RuntimeError, "must match the size of tensor b"),
        ("mask(2), mask(2), alpha=1.5", RuntimeError, "alpha"),
    ],
    "sub": [("mask(2), mask(2)", RuntimeError, "bool tensors are not subtracted")],
    "bitwise_and": [("m.ones(1), m.ones(1)", RuntimeError, "not implemented for 'Float'")],
}
NO_GRADIENT = {"greater", "greater_equal", "less", "less_equal", "not_equal", "isreal", "isclose", "allclose", "equal"}
SKIPS = {(op, "meta"): "reads values" for op in ("allclose", "equal")}
SKIPS |= {("nextafter", "special"): "the next float32 is another than the next float64"}
SKIPS |= {("nan_to_num", "complex grad"): "its samples are NaN and infinite, and so are the differences"}
SKIPS |= {("round", "grad"): "a step at the halves that the samples contain"}
