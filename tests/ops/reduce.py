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
ERRORS = {
    "sum": [
        ("x(2, 3), 2", IndexError, "Dimension out of range"),
        ("x(2, 3), (0, 0)", RuntimeError, "appears multiple times"),
        ("x(2, 3), 'a'", TypeError, "dim"),
    ],
    "mean": [("ints(3, high=5)", RuntimeError, "could not infer output dtype|Input dtype must be either")],
    "max.dim": [("x(0, 3), 0", IndexError, "Expected reduction dim 0 to have non-zero size")],
    "max": [("x(0)", RuntimeError, "Expected reduction dim to be specified for input.numel\\(\\) == 0")],
    "argmax": [("x(0, 3), 0", IndexError, "non-zero size")],
}
SKIPS = {(op, "reference"): "numpy divides by n" for op in ("var", "std")}
