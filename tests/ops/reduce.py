"""Samples of reductions."""

_DIMS = ["x(3, 4)", "x(3, 4), 1", "x(2, 3, 4), (0, 2)", "x(3, 4), 0, True", "x()", "x(70, 33), 0", "x(5, 300), 1"]
_SUMS = [*_DIMS, "x(0, 3)", "x(0, 3), 0", "x(3, 4), dtype=m.float64", "x(40000)"]
_PICK = ["distinct(3, 4), 1", "distinct(2, 3, 4), -2, True", "distinct(70, 33), 0", "distinct(3), 0", "x(), 0"]
_VAR = ["x(3, 4)", "x(3, 4), 1", "x(3, 4), 0, correction=0", "x(2, 3, 4), (0, 2), keepdim=True", "x(90, 50), 0"]

SAMPLES = {
    "sum": _SUMS,
    "nansum": [*_DIMS, "same(1.0, nan, 2.0)"],
    "mean": [*_DIMS, "x(3, 4), dtype=m.float64"],
    "nanmean": ["x(3, 4)", "x(3, 4), 1"],
    "prod": ["x(3, 4)", "x(3, 4), 1", "x()", "x(0, 3)", "same(2.0, 0.0, 3.0)", "same(0.0, 0.0, 3.0)"],
    "max": ["distinct(3, 4)", "x()"],
    "min": ["distinct(3, 4)", "x()"],
    "max.dim": _PICK,
    "min.dim": _PICK,
    "max.other": ["x(3, 4), x(4)"],
    "min.other": ["x(3, 4), x(4)"],
    "amax": ["distinct(3, 4)", "distinct(3, 4), 1", "distinct(2, 3, 4), (0, 2), True"],
    "amin": ["distinct(3, 4)", "distinct(3, 4), 1", "distinct(2, 3, 4), (0, 2), True"],
    "aminmax": ["distinct(3, 4)", "distinct(3, 4), dim=1"],
    "argmax": ["distinct(3, 4)", "distinct(3, 4), 1", "distinct(3, 4), 0, True", "x()", "distinct(9, 40), 1"],
    "argmin": ["distinct(3, 4)", "distinct(3, 4), 1", "distinct(3, 4), 0, True", "x()", "distinct(9, 40), 1"],
    "any": ["x(3, 4)", "x(3, 4), 1", "x(0, 3), 0", "same(0, 0)"],
    "all": ["x(3, 4)", "x(3, 4), 1", "x(0, 3), 0", "same(0, 1)"],
    "count_nonzero": ["x(3, 4)", "x(3, 4), 1", "same(0, 1, 0)"],
    "var": _VAR,
    "std": _VAR,
    "var_mean": _VAR,
    "std_mean": _VAR,
    "linalg_vector_norm": ["x(3, 4)", "x(3, 4), 1", "x(3, 4), inf, 1", "x(3, 4), 3.0, 0, True", "x(3, 4), 0"],
    "norm": ["x(3, 4)", "x(3, 4), 1", "x(3, 4), 2, 1, True", "x(3, 4), inf"],
    "dist": ["x(3, 4), x(3, 4)", "x(3), x(3), 1"],
    "logsumexp": ["x(3, 4), 1", "x(2, 3, 4), (0, 2), True", "x(3, 4), 0"],
}
DTYPES = dict.fromkeys(("any", "all", "count_nonzero"), "all")
DTYPES |= dict.fromkeys(("sum", "prod"), "all")
DTYPES |= dict.fromkeys(("max", "min", "max.dim", "min.dim", "amax", "amin", "argmax", "argmin", "aminmax"), "real")
DTYPES |= dict.fromkeys(("mean", "var", "std", "linalg_vector_norm", "nansum"), "floating") | {"logsumexp": "differentiable"}
_OVER = "axes(dim), keepdims=keepdim"
_SPREAD = f"{_OVER}, ddof=1 if correction is None else correction"
_BIASED = f"{_OVER}, ddof=int(unbiased)"
REFERENCES = {name: f"np.{name}(self if dtype is None else self.astype(dtype), {_OVER})" for name in ("sum", "nansum", "mean", "nanmean", "prod")}
REFERENCES |= {name: f"np.{name}(self, {_OVER})" for name in ("any", "all")}
REFERENCES |= {
    "max": "np.max(self)",
    "min": "np.min(self)",
    "amax": f"np.max(self, {_OVER})",
    "amin": f"np.min(self, {_OVER})",
    "max.dim": f"(np.max(self, {_OVER}), np.argmax(self, {_OVER}))",
    "min.dim": f"(np.min(self, {_OVER}), np.argmin(self, {_OVER}))",
    "aminmax": f"(np.min(self, {_OVER}), np.max(self, {_OVER}))",
    "argmax": "np.argmax(self, dim, keepdims=keepdim)",
    "argmin": "np.argmin(self, dim, keepdims=keepdim)",
    "count_nonzero": "np.count_nonzero(self, axes(dim))",
    **{name: f"np.{name}(self, {_SPREAD})" for name in ("var", "std")},
    **{f"{name}_mean": f"(np.{name}(self, {_SPREAD}), np.mean(self, {_OVER}))" for name in ("var", "std")},
    **{f"{name}.unbiased": f"np.{name}(self, ddof=int(unbiased))" for name in ("var", "std")},
    **{f"{name}_mean.unbiased": f"(np.{name}(self, ddof=int(unbiased)), np.mean(self))" for name in ("var", "std")},
    **{f"{name}.dim": f"np.{name}(self, {_BIASED})" for name in ("var", "std")},
    **{f"{name}_mean.dim": f"(np.{name}(self, {_BIASED}), np.mean(self, {_OVER}))" for name in ("var", "std")},
    "linalg_vector_norm": "vector_norm(self, ord, dim, keepdim)",
    "norm": "vector_norm(self, 2 if p is None else p, dim, keepdim)",
    "dist": "vector_norm(self - other, p)",
    **dict.fromkeys(("logsumexp", "_logsumexp"), f"scipy.special.logsumexp(self, {_OVER})"),
}
ERRORS = {
    "sum": [
        ("x(2, 3), 2", IndexError, "Dimension out of range"),
        ("x(2, 3), (0, 0)", RuntimeError, "appears multiple times"),
        ("x(2, 3), 'a'", TypeError, "dim"),
    ],
    "mean": [("ints(3, high=5)", RuntimeError, "must be either a floating point or complex dtype. Got: Long")],
    "max.dim": [("x(0, 3), 0", IndexError, "Expected reduction dim 0 to have elements")],
    "max": [("x(0)", RuntimeError, "Expected reduction dim to be specified for input.numel\\(\\) == 0")],
    "argmax": [("x(0, 3), 0", IndexError, "it has none to choose from")],
}
SKIPS = {(op, "complex numbers"): "an order is real" for op in ("linalg_vector_norm", "norm", "dist")}
SKIPS |= {(f"{op}_mean{kind}", "special"): "the running mean of infinities is NaN, as in PyTorch" for op in ("var", "std") for kind in ("", ".dim", ".unbiased")}
