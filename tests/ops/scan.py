"""Samples of running sums, products and extremes."""

_FORMS = ["x(3, 4), 0", "x(3, 4), 1", "x(), 0", "x(2, 3, 4), -2", "x(0, 3), 0", "x(5, 700), 1", "x(700, 5), 0"]
SAMPLES = {
    "cumsum": [*_FORMS, "x(3, 4), 1, dtype=m.float64"],
    "cumprod": [*_FORMS[:5], "same(2.0, 0.0, 3.0), 0"],
    "logcumsumexp": _FORMS[:4],
    "cummax": ["distinct(3, 4), 1", "distinct(3, 4), 0", "x(), 0"],
    "cummin": ["distinct(3, 4), 1", "distinct(3, 4), 0", "x(), 0"],
}
DTYPES = {"cumsum": "all", "logcumsumexp": "complex", "cumprod": "real", "cummax": "real", "cummin": "real"}
REFERENCES = {
    "cumsum": "np.cumsum(self if dtype is None else self.astype(dtype), dim)",
    "cumprod": "np.cumprod(self if dtype is None else self.astype(dtype), dim)",
    "logcumsumexp": "np.log(np.cumsum(np.exp(self), dim))",
    "cummax": "(np.maximum.accumulate(self, dim), last_extreme(np.maximum, self, dim))",
    "cummin": "(np.minimum.accumulate(self, dim), last_extreme(np.minimum, self, dim))",
}
ERRORS = {"cumsum": [("x(2, 3), 2", IndexError, "Dimension out of range")]}
