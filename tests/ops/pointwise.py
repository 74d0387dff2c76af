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
DTYPES = dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "log1p"), "complex")
DTYPES |= dict.fromkeys(("sub", "rsub", "neg"), "numbers") | {"addcdiv": "complex", "_where": "all", "square": "all"}
DTYPES |= {"where.self": "all", "maximum": "real", "minimum": "real", "round": "floats", "float_power": "floats", "pow": "floats"}
DTYPES |= dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), "integers")
ERRORS = {
    "add": [
        ("x(2, 3), x(2, 4)", RuntimeError, "must match the size of tensor b"),
        ("mask(2), mask(2), alpha=1.5", RuntimeError, "alpha"),
    ],
    "sub": [("mask(2), mask(2)", RuntimeError, "Subtraction, the `-` operator, with two bool tensors is not supported")],
    "bitwise_and": [("m.ones(1), m.ones(1)", RuntimeError, "not implemented for 'Float'")],
}
SKIPS = {("round", "grad"): "a step at the halves that the samples contain"}
