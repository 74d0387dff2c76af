"""Samples of softmax and its kin."""

_FORMS = ["x(3, 4), 1", "x(3, 4), 0", "x(), 0", "x(2, 3, 4), 1", "x(0, 3), 1", "x(3, 4), 1, dtype=m.float64", "x(4, 200), 1"]
SAMPLES = {"softmax": [*_FORMS, "same(-inf, 0.0, 1.0), 0"], "log_softmax": _FORMS, "softmin": _FORMS[:3]}
SAMPLES["_masked_softmax"] = [
    "x(3, 4), m.tensor([[True, False, False, True], [False, False, True, False], [False] * 4])",
    "x(2, 3), m.tensor([[True, False, True], [False, False, False]]), 0",
    "x(2, 2, 3, 3), m.ones(3, 3).bool().triu(1), 3, 0",
    "x(2, 2, 3, 3), m.tensor([[True, False, False], [False, False, True]]), -1, 1",
]
DTYPES = {"softmax": "floating", "log_softmax": "floating"}
REFERENCES = {
    "softmax": "scipy.special.softmax(self, dim)",
    "log_softmax": "scipy.special.log_softmax(self, dim)",
    "_masked_softmax": "scipy.special.softmax(np.where(np.expand_dims(mask, (1, 2)) if mask_type == 1 else mask, -np.inf, self), -1 if dim is None else dim)",
    "softmin": "scipy.special.softmax(-self, dim)",
    "_softmax_backward_data": "output * (grad_output - np.sum(grad_output * output, dim, keepdims=True))",
    "_log_softmax_backward_data": "grad_output - np.exp(output) * np.sum(grad_output, dim, keepdims=True)",
}
ERRORS = {
    "_masked_softmax": [
        ("x(2, 3), ints(2, 3, high=2)", RuntimeError, "expected a mask of bool"),
        ("x(2, 3), mask(1, 3)", RuntimeError, "a mask of the input's sizes"),
        ("x(2, 2, 3, 3), mask(3, 3), 3, 1", RuntimeError, "does not fit scores"),
    ],
    "softmax": [
        ("x(2, 3), 2", IndexError, "Dimension out of range"),
        ("ints(3, high=4), 0", RuntimeError, "not implemented for 'Long'"),
    ]
}
SKIPS = {("log_softmax", "special"): "a row with an infinity is NaN throughout, as in PyTorch"}
