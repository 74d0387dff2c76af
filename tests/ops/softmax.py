"""Samples of softmax and its kin."""

_FORMS = ["x(3, 4), 1", "x(3, 4), 0", "x(), 0", "x(2, 3, 4), 1", "x(0, 3), 1", "x(3, 4), 1, dtype=m.float64", "x(4, 200), 1"]
SAMPLES = {"softmax": [*_FORMS, "same(-inf, 0.0, 1.0), 0"], "log_softmax": _FORMS, "softmin": _FORMS[:3]}
DTYPES = {"softmax": "floating", "log_softmax": "floating"}
REFERENCES = {
    "softmax": "scipy.special.softmax(self, dim)",
    "log_softmax": "scipy.special.log_softmax(self, dim)",
    "softmin": "scipy.special.softmax(-self, dim)",
    "_softmax_backward_data": "output * (grad_output - np.sum(grad_output * output, dim, keepdims=True))",
    "_log_softmax_backward_data": "grad_output - np.exp(output) * np.sum(grad_output, dim, keepdims=True)",
}
ERRORS = {
    "softmax": [
        ("x(2, 3), 2", IndexError, "Dimension out of range"),
        ("ints(3, high=4), 0", RuntimeError, "not implemented for 'Long'"),
    ]
}
SKIPS = {("log_softmax", "special"): "a row with an infinity is NaN throughout, as in PyTorch"}
