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
ERRORS = {
    "max_pool2d": [
        ("x(2), 2", RuntimeError, "non-empty 3D or 4D"),
        ("x(1, 1, 2, 2), 3", RuntimeError, r"Given input size: \(1x2x2\). Calculated output size: \(1x0x0\). Output size is too small"),
        ("x(1, 1, 4, 4), 2, 2, 2", RuntimeError, "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2"),
        ("x(1, 1, 4, 4), 2, 0", RuntimeError, "stride should not be zero"),
        ("x(1, 1, 4, 4), 2, -1", RuntimeError, "stride should be greater than zero"),
        ("x(1, 1, 4, 4), (2, 2, 2)", RuntimeError, "kernel_size must either be a single int, or a tuple"),
        ("x(1, 0, 4, 4), 2", RuntimeError, "optional 0 dim batch size for input"),
        ("x(1, 1, 4, 4), 2, 2, 0, 0", RuntimeError, "dilation should be greater than zero"),
        ("x(1, 1, 4, 4), 2, 2, -1", RuntimeError, "pad must be non-negative, but got pad: -1"),
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
        ("x(1, 1, 4, 4), -1", RuntimeError, "elements of output_size must be greater than or equal to 0"),
        ("x(1, 1, 0, 4), 2", RuntimeError, "Expected input to have non-zero size"),
    ],
}
_ALONE = "nn.functional gives the values alone unless asked for the places"
SKIPS = {(f"adaptive_max_pool{n}d", "boxed"): _ALONE for n in (2, 3)}
SKIPS |= {(f"adaptive_max_pool{n}d", "parity"): "PyTorch gives indices only when asked" for n in (2, 3)}
