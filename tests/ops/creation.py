"""Samples of the factories; the tested dtype is asked for by keyword."""

SAMPLES = {
    "zeros": ["(2, 3), dtype=dtype", "(0,), dtype=dtype", "(), dtype=dtype"],
    "ones": ["(2, 3), dtype=dtype"],
    "full": ["(2, 3), 1, dtype=dtype", "(2,), True", "(2,), 3", "(2,), 1.5", "(2,), 1j"],
    "zeros_like": ["x(2, 3)", "x(2, 3), dtype=m.int64"],
    "ones_like": ["x(2, 3)"],
    "full_like": ["x(2, 3), 1"],
    "arange": ["5", "5.0", "0", "5, dtype=dtype"],
    "arange.start": ["1, 4", "5, 11, 2", "1, 2.5, 0.5", "5, 0, -2", "1.0, 5.0"],
    "linspace": ["1, 10, 10", "3, 10, 5", "-10, 10, 1", "0, 1, 0", "10, 1, 7"],
    "logspace": ["0, 2, 5", "0, 3, 4, 2.0"],
    "eye": ["3, dtype=dtype", "2, 3, dtype=dtype", "0"],
    "tril_indices": ["3, 3", "4, 3, 1"],
    "triu_indices": ["3, 3", "3, 4, -1"],
}
_ENDS = [f"{n}.{kinds}" for n in ("linspace", "logspace") for kinds in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")]
NO_GRADIENT = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", *_ENDS}
SKIPS = {(op, "meta"): "the ends are read" for op in _ENDS}
DTYPES = dict.fromkeys(("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "eye"), "all") | {
    "arange": "real"
}
REFERENCES = {
    **{f"{name}_like": f"np.{name}(self.shape)" for name in ("zeros", "ones")},
    **{f"new_{name}": f"np.{name}(size)" for name in ("zeros", "ones")},
    "full_like": "np.full(self.shape, fill_value)",
    "new_full": "np.full(size, fill_value)",
    "scalar_tensor": "s",
    "range": "np.arange(start, end + step / 2, step)",
    "logspace": "np.logspace(start, end, steps, base=base)",
    **{key: "np.linspace(start, end, steps)" for key in _ENDS if key.startswith("linspace")},
    **{key: "np.logspace(start, end, steps, base=base)" for key in _ENDS if key.startswith("logspace")},
    "tril_indices": "np.stack(np.tril_indices(row, offset, col))",
    "triu_indices": "np.stack(np.triu_indices(row, offset, col))",
}
ERRORS = {
    "full": [
        ("(2,), 300, dtype=m.uint8", RuntimeError, "does not fit into type uint8_t"),
        ("(2,), 1e300, dtype=m.float32", RuntimeError, "does not fit into type float"),
    ],
    "zeros": [
        ("(2, -3)", RuntimeError, "negative dimension -3"),
        ("(2**40, 2**40)", RuntimeError, "overflow"),
    ],
    "arange.start": [("1, 5, -1", RuntimeError, "its sign is inconsistent with the bounds"), ("0, 5, 0", RuntimeError, "nonzero")],
    "eye": [("-1", RuntimeError, "n must not be negative, but is -1")],
}
