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
DTYPES = dict.fromkeys(("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "eye"), "all") | {
    "arange": "real"
}
ERRORS = {
    "full": [
        ("(2,), 300, dtype=m.uint8", RuntimeError, "cannot be converted to type uint8_t without overflow"),
        ("(2,), 1e300, dtype=m.float32", RuntimeError, "cannot be converted to type float without overflow"),
    ],
    "zeros": [
        ("(2, -3)", RuntimeError, "negative dimension -3"),
        ("(2**40, 2**40)", RuntimeError, "overflow"),
    ],
    "arange.start": [("1, 5, -1", RuntimeError, "inconsistent with step sign"), ("0, 5, 0", RuntimeError, "nonzero")],
    "eye": [("-1", RuntimeError, "greater or equal to 0")],
}
