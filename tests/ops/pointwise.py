"""Samples of pointwise ops: only those whose inputs need care; the others get the usual shapes by themselves."""


def forms(make):
    return [f"{make}(3, 4)", f"{make}()", f"{make}(0, 2)", f"{make}(37)", f"{make}(2, 1, 5)"]


def pairs(make, second=None, numbers=True):
    second = second or make
    found = [
        f"{make}(3, 4), {second}(3, 4)",
        f"{make}(3, 4), {second}(4)",
        f"{make}(3, 1), {second}(1, 4)",
        f"{make}(), {second}(3)",
        f"{make}(0, 2), {second}(2)",
        f"{make}(37), {second}(37)",
    ]
    return [*found, f"{make}(3), 2"] if numbers else found


SAMPLES = {name: forms("pos") for name in ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "digamma", "lgamma")}
SAMPLES |= {"_share_of": ["x(3, 4), x(4), 0.7", "x(), x(), 1.0", "x(37), x(37), 1.0"]}
SAMPLES |= {"log1p": forms("pos"), "acosh": ["same(1.5, 2.0, 3.0)"], "logit": ["same(0.2, 0.5, 0.9)"]}
SAMPLES |= {name: forms("unit") for name in ("asin", "acos", "atanh", "erfinv")}
SAMPLES |= {name: pairs("x", "pos") for name in ("div", "true_divide", "remainder", "fmod", "floor_divide", "_div_trunc")}
SAMPLES |= {"atan2": pairs("x", "pos", numbers=False), "xlogy": pairs("pos"), "_logit": ["same(0.2, 0.5, 0.9)"]}
SAMPLES |= {
    "div.mode": [f"x(3, 4), pos(3, 4), rounding_mode={mode!r}" for mode in ("floor", "trunc", None)],
    "pow": [*pairs("pos")[:5], "x(3), 2", "x(3), 3", "pos(3), 0.5", "pos(3), -1.5"],
    "pow.Scalar": ["2, x(3)"],
    "float_power": ["pos(3), 2", "pos(3), pos(3)"],
    "_where": ["mask(3, 4), x(3, 4), x(4)", "mask(), x(2), x(2)"],
    "where.self": ["mask(3, 4), x(3, 4), x(3, 4)", "mask(3, 1), x(4), x(3, 4)", "mask(4), x(3, 4), 0", "mask(), x(2), x(2)"],
    "lerp": ["x(3, 4), x(3, 4), 0.3", "x(3, 4), x(4), x(3, 1)"],
    "addcmul": ["x(3, 4), x(3, 4), x(4)", "x(3), x(3), x(3), value=2"],
    "addcdiv": ["x(3, 4), x(3, 4), pos(4)", "x(3), x(3), pos(3), value=2"],
    "_standardize": ["x(3, 4), x(3, 4), pos(4)", "x(2, 3, 5), x(3, 1), pos(3, 1)"],
    "round": ["x(3, 4)", "same(0.5, 1.5, 2.5, -0.5)"],
    "add": [*pairs("x"), "x(3), x(3), alpha=2"],
    "sub": [*pairs("x"), "x(3), x(3), alpha=2"],
    "rsub": ["x(3), x(3)", "x(3), 2"],
    "square": ["x(3, 4)", "x()", "x(0, 2)", "x(37)"],
}
_ALIASES = {"arccos": "acos", "arcsin": "asin", "arctanh": "atanh", "arccosh": "acosh", "true_divide": "div", "divide": "div"}
SAMPLES |= {alias: SAMPLES[name] for alias, name in _ALIASES.items()}
DTYPES = dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "log1p"), "complex")
DTYPES |= {"_where": "all", "square": "all"}
DTYPES |= {"where.self": "all", "round": "floats", "float_power": "floats", "pow": "floats"}
REFERENCES = {name: f"np.{name}(self, other)" for name in ("multiply", "true_divide", "greater", "greater_equal", "less", "less_equal", "not_equal", "arctan2")}
REFERENCES |= {name: f"np.{name}(self)" for name in ("absolute", "negative", "arccos", "arcsin", "arctan", "arccosh", "arcsinh", "arctanh", "fix")}
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
}
ERRORS = {
    "add": [
        ("x(2, 3), x(2, 4)", RuntimeError, "must match the size of tensor b"),
        ("mask(2), mask(2), alpha=1.5", RuntimeError, "alpha"),
    ],
    "sub": [("mask(2), mask(2)", RuntimeError, "bool tensors are not subtracted")],
}
NO_GRADIENT = {"greater", "greater_equal", "less", "less_equal", "not_equal"}
SKIPS = {("nextafter", "special"): "the next float32 is another than the next float64"}
SKIPS |= {("round", "grad"): "a step at the halves that the samples contain"}
