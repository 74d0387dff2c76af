"""Samples of pooling: padding, dilation, ceil mode, divisors, no batch, empty batch."""

SAMPLES = {
    "max_pool1d": ["distinct(2, 3, 9), 2", "distinct(3, 9), 3, 2, 1", "distinct(2, 3, 9), 2, 3, 0, 2, True"],
    "max_pool2d": [
        *("distinct(1, 2, 4, 5), 2", "distinct(1, 1, 5, 5), 3, 2, 1"),
        *("distinct(2, 3, 8, 9), 2", "distinct(2, 3, 8, 9), 3, 2, 1", "distinct(3, 8, 9), (2, 3), (1, 2)", "distinct(1, 2, 7, 40), 2, 2"),
        *("distinct(2, 3, 8, 9), 2, 2, 1, 2", "distinct(2, 3, 8, 9), 3, 2, 0, 1, True", "distinct(0, 3, 8, 9), 2", "distinct(1, 2, 9, 9), 3, 3"),
    ],
    "max_pool3d": ["distinct(1, 1, 3, 4, 4), 2", "distinct(2, 3, 4, 5, 6), 2", "distinct(3, 4, 5, 6), (2, 3, 2), 2, 1"],
    "max_pool2d_with_indices": ["distinct(1, 2, 4, 5), 2, 1", "distinct(2, 3, 8, 9), 2", "distinct(2, 3, 8, 9), 3, 2, 1, 1, True"],
    "max_pool2d_with_indices_backward": ["x(2, 1, 2), x(2, 3, 4), (2, 2), (2, 2), (0, 0), (1, 1), False, ints(2, 1, 2, high=8)"],
    "max_pool3d_with_indices_backward": ["x(1, 1, 1, 2), x(1, 2, 2, 4), (2,) * 3, (2,) * 3, (0,) * 3, (1,) * 3, False, ints(1, 1, 1, 2, high=8)"],
    "_adaptive_avg_pool2d_backward": ["x(1, 2, 3, 2), x(1, 2, 4, 5)"],
    "_adaptive_avg_pool3d_backward": ["x(1, 1, 2, 3, 1), x(1, 1, 3, 4, 4)"],
    "avg_pool1d": ["x(2, 3, 9), 2", "x(3, 9), 3, 2, 1", "x(2, 3, 9), 2, 3, 1, True, False"],
    "avg_pool2d": [
        *("x(1, 2, 4, 5), 2", "x(1, 1, 5, 5), 3, 2, 1, True, False"),
        *("x(2, 3, 8, 9), 2", "x(2, 3, 8, 9), 3, 2, 1", "x(3, 8, 9), (2, 3), (1, 2)", "x(2, 3, 8, 9), 3, 2, 1, True"),
        *("x(2, 3, 8, 9), 3, 2, 1, False, False", "x(2, 3, 8, 9), 2, 2, 0, False, True, 3", "x(0, 3, 8, 9), 2"),
    ],
    "avg_pool3d": ["x(1, 1, 3, 4, 4), 2, 1", "x(2, 3, 4, 5, 6), 2", "x(2, 3, 4, 5, 6), 3, 2, 1, True, False"],
    "adaptive_avg_pool1d": ["x(2, 3, 9), 4"],
    "adaptive_avg_pool2d": ["x(1, 2, 4, 5), (3, 2)", "x(2, 3, 8, 9), 1", "x(2, 3, 8, 9), (3, 4)", "x(3, 8, 9), (10, 2)", "x(0, 3, 8, 9), 2", "x(1, 2, 20, 20), 1"],
    "adaptive_avg_pool3d": ["x(1, 1, 3, 4, 4), (2, 3, 1)", "x(2, 3, 4, 5, 6), (2, 3, 1)"],
    "adaptive_max_pool1d": ["distinct(2, 3, 9), 4"],
    "adaptive_max_pool2d": ["distinct(1, 2, 4, 5), (3, 2)", "distinct(2, 3, 8, 9), 1", "distinct(2, 3, 8, 9), (3, 4)"],
    "adaptive_max_pool3d": ["distinct(1, 1, 3, 4, 4), (2, 3, 1)", "distinct(2, 3, 4, 5, 6), (2, 3, 1)"],
}
DTYPES = dict.fromkeys(SAMPLES, "floating")
_WINDOW = "kernel_size, stride, padding"
_AVERAGE = f"{_WINDOW}, ceil_mode, count_include_pad"
REFERENCES = {
    "_max_pool": f"max_pool(self, len(kernel_size), {_WINDOW}, dilation, ceil_mode)",
    "_max_pool_values": f"max_pool(self, len(kernel_size), {_WINDOW}, dilation, ceil_mode)[0]",
    "_max_pool_backward": "np.stack([adjoint_of(lambda i: i.reshape(-1)[at], g, input_size[-dims:]) for g, at in"
    " zip(grad_output.reshape(-1, *grad_output.shape[-dims:]), indices.reshape(-1, *indices.shape[-dims:]))]).reshape(input_size)",
    "_avg_pool": f"avg_pool(self, len(kernel_size), {_AVERAGE}, divisor_override)",
    "_adaptive_avg_pool": "adaptive_avg_pool(self, len(output_size), output_size)",
    "_adaptive_max_pool": "adaptive_max_pool(self, len(output_size), output_size)",
    "avg_pool1d": f"avg_pool(self, 1, {_AVERAGE})",
    **{f"avg_pool{n}d": f"avg_pool(self, {n}, {_AVERAGE}, divisor_override)" for n in (2, 3)},
    **{f"max_pool{n}d": f"max_pool(self, {n}, {_WINDOW}, dilation, ceil_mode)[0]" for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": f"max_pool(self, {n}, {_WINDOW}, dilation, ceil_mode)" for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": f"adaptive_avg_pool(self, {n}, output_size)" for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": f"adaptive_max_pool(self, {n}, output_size)" for n in (1, 2, 3)},
}
ERRORS = {
    "max_pool2d": [
        ("x(2), 2", RuntimeError, "non-empty 3D or 4D"),
        ("x(1, 1, 2, 2), 3", RuntimeError, "an input of 1x2x2 would become 1x0x0: Output size is too small"),
        ("x(1, 1, 4, 4), 2, 2, 2", RuntimeError, "pad should be at most half of the window, whose kernel_size=2"),
        ("x(1, 1, 4, 4), 2, 0", RuntimeError, "stride should not be zero"),
        ("x(1, 1, 4, 4), 2, -1", RuntimeError, "stride should be greater than zero"),
        ("x(1, 1, 4, 4), (2, 2, 2)", RuntimeError, "kernel_size must be a single int or 2 of them"),
        ("x(1, 0, 4, 4), 2", RuntimeError, "optional 0 dim batch size for input"),
        ("x(1, 1, 4, 4), 2, 2, 0, 0", RuntimeError, "dilation should be greater than zero"),
        ("x(1, 1, 4, 4), 2, 2, -1", RuntimeError, "padding must be non-negative, not -1"),
        ("x(1, 1, 4, 4), 2**40", RuntimeError, "too large"),
        ("mask(1, 1, 4, 4), 2", NotImplementedError, "not implemented for 'Bool'"),
    ],
    "avg_pool2d": [
        ("x(1, 1, 4, 4), 2, 2, 2", RuntimeError, "pad should be at most half"),
        ("x(1, 1, 4, 4), 2, 2, 0, False, True, 0", RuntimeError, "divisor must be not zero"),
    ],
    "adaptive_avg_pool2d": [
        ("x(2), 2", RuntimeError, r"adaptive_avg_pool2d\(\): Expected 3D or 4D tensor, but got \[2\]"),
        ("x(1, 1, 4, 4), (2, 2, 2)", RuntimeError, "output_size must be 2"),
        ("x(1, 1, 4, 4), -1", RuntimeError, "output_size must not be negative"),
        ("x(1, 1, 0, 4), 2", RuntimeError, "the input must have non-zero size"),
    ],
}

# ---- norms, windows at random places, maxima put back ----

_PLACED = "pos(2, 3, 2, 2), m.tensor([[0, 3], [9, 14]]).expand(2, 3, 2, 2)"
_RANDOM = "m.tensor([[[0.3, 0.7], [0.9, 0.1]]], dtype=dtype)"
SAMPLES |= {
    "lp_pool1d": ["pos(2, 3, 9), 2, 3", "pos(3, 9), 3.0, 2, 1, True"],
    "lp_pool2d": ["pos(1, 2, 4, 4), 2, 2", "pos(2, 3, 8, 9), 2, 2", "pos(3, 8, 9), 1.5, (2, 3), (1, 2)", "x(2, 3, 8, 9), 2, 3, 2, True"],
    "lp_pool3d": ["pos(1, 1, 3, 3, 3), 3, 2, 1", "pos(2, 3, 4, 5, 6), 2, 2", "pos(3, 4, 5, 6), 3, (2, 3, 2), 2"],
    "fractional_max_pool2d": [
        "distinct(1, 1, 4, 5), 2, (2, 3), m.tensor([[[0.3, 0.7]]], dtype=dtype)",
        *(f"distinct(1, 2, 7, 8), (2, 3), (3, 4), {_RANDOM}", f"distinct(2, 7, 8), 2, 1, {_RANDOM}"),
        f"distinct(1, 2, 7, 8), 2, (6, 7), {_RANDOM}",
    ],
    "fractional_max_pool3d": [
        "distinct(1, 1, 3, 3, 3), 2, 1, m.tensor([[[0.3, 0.7, 0.5]]], dtype=dtype)",
        "distinct(1, 1, 5, 6, 7), 2, (2, 3, 3), m.tensor([[[0.3, 0.7, 0.5]]], dtype=dtype)",
    ],
    "_fractional_max_pool": [
        "distinct(1, 1, 4, 5), 2, 2, (2, 3), None, m.tensor([[[0.3, 0.7]]], dtype=dtype)",
        *(f"distinct(1, 2, 7, 8), 2, (2, 3), (3, 4), None, {_RANDOM}", f"distinct(1, 2, 7, 8), 2, 2, None, [0.5], {_RANDOM}"),
        f"distinct(2, 7, 8), 2, 2, None, (0.5, 0.7), {_RANDOM}",
    ],
    "max_unpool2d": [f"{_PLACED}, (4, 4)", f"{_PLACED}, (3, 5)", "pos(1, 2, 2), m.tensor([[[1, 2], [4, 3]]]), 4"],
    "max_unpool3d": ["pos(2, 1, 2, 1), m.tensor([[3], [5]]).expand(2, 1, 2, 1), (2, 4, 2), 2, 0"],
    "_max_unpool": [
        *(f"{_PLACED}, 2, 2", f"{_PLACED}, 2, (2, 2), (2, 2), 0, (5, 4)", f"{_PLACED}, 2, 3, 2, 1, (2, 3, 4, 4)"),
        "pos(2, 3), m.tensor([0, 3, 4]).expand(2, 3), 1, 2",
    ],
}
DTYPES |= dict.fromkeys(("fractional_max_pool2d", "fractional_max_pool3d", "max_unpool2d", "max_unpool3d"), "floats")
ERRORS |= {
    "fractional_max_pool2d": [
        (f"x(2, 7), 2, 2, {_RANDOM}", RuntimeError, r"Expected 3D or 4D tensor, but got \[2, 7\]"),
        (f"x(1, 2, 3, 3), 3, 2, {_RANDOM}", RuntimeError, "pool size 3 and output size 2 are too large for an input size 3"),
        ("x(1, 2, 7, 8), 2, 2, m.zeros(1, 1, 2, dtype=dtype)", RuntimeError, "expected _random_samples of shape"),
    ],
    "_fractional_max_pool": [
        ("x(1, 2, 7, 8), 2, 2", ValueError, "fractional_max_pool2d requires specifying either an output_size or an output_ratio"),
        ("x(1, 2, 7, 8), 4, 2, 2", RuntimeError, "over 2 or 3 dimensions"),
        ("x(1, 2, 7, 8), 2, 2, None, [1.5]", RuntimeError, "output_ratio must be between 0 and 1"),
    ],
    "max_unpool2d": [
        ("x(1, 2, 2), m.tensor([[[0, 1], [1, 3]]]), (1, 2)", RuntimeError, "Found an invalid max index"),
        ("x(1, 2, 2), x(1, 2, 2), (4, 4)", RuntimeError, "elements in indices should be int64"),
        ("x(1, 2, 2), ints(1, 2, 1, high=4), (4, 4)", RuntimeError, "input and indices must have one shape"),
        ("x(2), ints(2, high=4), (4, 4)", RuntimeError, "3 or 4 dimensions, not 1"),
    ],
    "_max_unpool": [
        ("x(1, 2, 2), ints(1, 2, 2, high=4), 2, 2, None, 0, (2, 4)", ValueError, r"dim 0 must be between 2 and 6"),
        ("x(1, 2, 2), ints(1, 2, 2, high=4), 2, 2, None, 0, (4,)", ValueError, "output_size should be a sequence containing 2 or 4"),
    ],
}
