"""Samples of statistics and calculus: every form, weights, ends of ranges."""

_QUANTILES = ["x(5), {q}", "x(3, 4), {q}", "x(3, 4), {q}, 1", "x(3, 4), {q}, 0, True", "x(3, 4), {q}, None, True",
              *(f"x(3, 5), {{q}}, 1, interpolation={mode!r}" for mode in ("lower", "higher", "midpoint", "nearest"))]
_NUMBER = [s.format(q="0.3") for s in _QUANTILES]
_TENSOR = [s.format(q="m.tensor([0.0, 0.3, 1.0], dtype=dtype)") for s in _QUANTILES]
_PIECES = ["x(4, 6, 2), 2", "x(4, 6, 2), (1, 3)"]

SAMPLES = {
    **dict.fromkeys(("quantile", "nanquantile"), _TENSOR),
    **{f"{name}.scalar": _NUMBER for name in ("quantile", "nanquantile")},
    "cov": ["x(3, 5)", "x(5)", "x(3, 5), correction=0", "x(3, 5), fweights=ints(5, low=1, high=4)", "x(3, 4), aweights=weights(4)",
            "x(3, 4), correction=0, fweights=ints(4, low=1, high=4), aweights=weights(4)"],
    "corrcoef": ["x(3, 5)", "x(5)"],
    "histogram.bin_ct": ["x(20)", "x(4, 5), 7", "x(20), 5, range=(-1, 1)", "x(6), 4, weight=pos(6)", "x(20), 4, density=True", "m.ones(3, dtype=dtype), 3", "same(nan, 1.0), 2, range=(0, 2)"],
    "histogram.bins_tensor": ["x(20), same(-2.0, -1.0, 0.5, 2.0)", "x(3, 4), same(-1.0, 0.0, 1.0), weight=pos(3, 4), density=True", "same(0.0, 1.0, 2.0), same(0.0, 1.0, 2.0)", "x(3), same(1.0)"],
    "diff": ["x(5)", "x(3, 4)", "x(3, 4), 2", "x(3, 4), 1, 0", "x(3, 4), 0", "x(3, 4), 1, 1, x(3, 2), x(3, 1)", "x(3, 4), 9"],
    "trapezoid.x": ["x(4), x(4)", "x(3, 4), x(4)", "x(3, 4), x(3), dim=0", "x(3, 4), x(3, 4)", "x(2, 3, 4), x(3, 4)"],
    "trapezoid.dx": ["x(4)", "x(3, 4), dx=2", "x(3, 4), dim=0", "x(0)"],
    "trapz.x": ["x(3, 4), x(4)"],
    "trapz.dx": ["x(3, 4), dx=0.5"],
    "cumulative_trapezoid.x": ["x(4), x(4)", "x(3, 4), x(3), dim=0"],
    "cumulative_trapezoid.dx": ["x(4)", "x(3, 4), dx=2, dim=0", "x(0)"],
    "renorm": ["x(3, 4), 2, 0, 1", "x(3, 4), 1, 1, 2", "x(2, 3, 4), 2, 1, 0.5"],
    "isin.Tensor_Tensor": ["ints(3, 4, high=9), ints(5, high=9)", "ints(3, 4, high=90), ints(50, high=90)", "x(3), x(0)", "ints(3, high=4), ints(2, high=4), invert=True"],
    "isin.Tensor_Scalar": ["ints(3, 4, high=3), 1"],
    "isin.Scalar_Tensor": ["1, ints(3, high=3)"],
}
DTYPES = {"diff": "numbers", "isin.Tensor_Tensor": "integers", "isin.Tensor_Scalar": "integers",
          "cov": "complex", "corrcoef": "complex", "nonzero_static": "floats", "trapezoid.dx": "complex"}
REFERENCES = {
    **{f"{name}{kind}": f"np.{name}(self, q, dim, method=interpolation, keepdims=keepdim)" for name in ("quantile", "nanquantile") for kind in ("", ".scalar")},
    "cov": "np.cov(self, ddof=correction, fweights=fweights, aweights=aweights)",
    "histogram.bin_ct": "np.histogram(self, bins, range, density=density, weights=weight)",
    "histogram.bins_tensor": "np.histogram(self, bins, density=density, weights=weight)",
    **dict.fromkeys(("trapezoid.x", "trapz.x"), "np.trapezoid(y, x, axis=dim)"),
    **dict.fromkeys(("trapezoid.dx", "trapz.dx"), "np.trapezoid(y, dx=dx, axis=dim)"),
    "cumulative_trapezoid.x": "scipy.integrate.cumulative_trapezoid(y, x, axis=dim)",
    "cumulative_trapezoid.dx": "scipy.integrate.cumulative_trapezoid(y, dx=dx, axis=dim) if y.size else y",
    "renorm": "self * np.minimum(1, maxnorm / (1e-7 + vector_norm(self, p, [d for d in range(self.ndim) if d != dim], True)))",
}
ERRORS = {
    "quantile.scalar": [("x(3), 1.5", RuntimeError, r"quantile\(\) q must be in the range \[0, 1\] but got 1.5"),
                        ("x(3).long(), 0.5", RuntimeError, "input tensor must be either float or double dtype"),
                        ("x(0), 0.5", RuntimeError, "input tensor must be non-empty")],
    "quantile": [("x(3), x(2, 2)", RuntimeError, "q must be a scalar or 1D tensor"), ("x(3), pos(1).double()", RuntimeError, "q tensor must be same dtype"),
                 ("x(3), same(0.5), interpolation='x'", RuntimeError, "interpolation must be one of linear, lower, higher, midpoint or nearest, but got x")],
    "cov": [("x(2, 2, 2)", RuntimeError, "expected input to have two or fewer dimensions but got an input with 3 dimensions"),
            ("x(2, 3), fweights=pos(3)", RuntimeError, "expected fweights to have integral dtype"),
            ("x(2, 3), fweights=ints(2, high=3)", RuntimeError, "but got 2 != 3")],
    "histogram.bin_ct": [("x(3), 0", RuntimeError, "bins must be > 0"), ("x(3), 2, range=(2, 1)", RuntimeError, "min should not exceed max"),
                         ("x(3).long(), 2", RuntimeError, "not implemented for 'Long'")],
    "diff": [("x(3), -1", RuntimeError, "order must be non-negative but got -1"), ("x()", RuntimeError, "at least one-dimensional"),
             ("x(3, 4), 1, 1, x(2, 1)", RuntimeError, r"input.size\(0\) = 3, but got tensor.size\(0\) = 2")],
    "trapezoid.x": [("x(3, 4), x(2)", RuntimeError, "There must be one `x` value for each sample point")],
    "renorm": [("x(3, 4), 0, 0, 1", RuntimeError, "non-positive-norm not supported"), ("x(3), 2, 0, 1", RuntimeError, "needs at least 2 dimensions")],
    "isin.Tensor_Tensor": [("mask(2), mask(2)", RuntimeError, "Unsupported input type encountered for isin")],
}
SKIPS = {
    ("histogram.bin_ct", "special"): "refuses ranges that are not finite",
    ("nanquantile", "special"): "NumPy interpolates between infinities",
    ("nanquantile.scalar", "special"): "NumPy interpolates between infinities",
    ("trapezoid.dx", "special"): "infinities of both signs cancel or not by the order of sums",
    ("trapz.dx", "special"): "infinities of both signs cancel or not by the order of sums",
    ("renorm", "complex numbers"): "an order and a length are real",
    ("renorm", "special"): "a slice that is not finite stays as it is",
}
