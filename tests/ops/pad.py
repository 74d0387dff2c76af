"""Samples of padding: every mode, cropping, several dimensions."""

_MODES = [
    f"x(2, 3, 4, 5), {pad}, mode={mode!r}"
    for mode in ("reflect", "replicate", "circular")
    for pad in ((2, 1, 1, 0), (1, -2, -1, 2))
]
SAMPLES = {
    "constant_pad_nd": ["x(2, 3), (1, 2)", "x(2, 3, 4), (1, 0, 0, 2), 1.5", "x(2, 3), (-1, 2)", "x(2, 3), (-2, -1)", "x(2, 3), ()"],
    "pad": ["x(2, 3), (1, 2)", "x(2, 3), (1, 2, 0, 1), 'constant', 2.5", "x(2, 3, 5), (2, 1), 'reflect'", *_MODES,
            "x(1, 2, 3, 4, 5), (1, 1, 1, 1, 1, 1), 'replicate'", "x(1, 2, 3), (1, -1), 'reflect'", "x(2, 3, 5), (7, 9), 'replicate'"],
}
DTYPES = {"constant_pad_nd": "all", "pad": "numbers"}
REFERENCES = {
    "pad": "padded(self, pad, mode, value)",
    "constant_pad_nd": "padded(self, pad, 'constant', value)",
    "_pad_edges": "padded(self, pad, mode)",
    "_pad_edges_backward": "adjoint_of(lambda i: padded(i, pad, mode), grad_output, input_size)",
}
ERRORS = {
    "pad": [
        ("x(2, 3), (1,)", RuntimeError, "Padding length must be divisible by 2"),
        ("x(2, 3), (1, 1, 1, 1, 1, 1)", RuntimeError, "at most two times the dimensions of the input, but got 6"),
        ("x(2, 3), (-4, 0)", RuntimeError, "length must be non-negative"),
        ("x(2, 3), (1, 1), 'foo'", NotImplementedError, "Unrecognised padding mode foo"),
        ("x(2, 3), (1, 1), 'reflect', 1.0", RuntimeError, "doesn't take a value, but got 1"),
        ("x(3), (1, 1), 'reflect'", NotImplementedError, "padding by 2 numbers is not supported for 1D input"),
        ("x(1, 2, 3), (3, 3), 'reflect'", RuntimeError, "Padding size should be less than the dimension"),
        ("x(1, 2, 3), (-3, 3), 'circular'", RuntimeError, "would go round dimension 2 more than once"),
        ("x(1, 2, 5), (-4, 2), 'circular'", RuntimeError, "would go round dimension 2 more than once"),
        ("x(1, 2, 3), (5, 5), 'circular'", RuntimeError, "would go round dimension 2 more than once"),
        ("x(2, 3), (2**62, 0)", RuntimeError, "too large"),
    ],
}
