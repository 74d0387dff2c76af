"""Samples of resampled images: every mode up and down, with given scales, antialiased, channels-last, of few pixels."""


def _sizes(mode, dims, *sizes):
    image = (2, 3, 5, 4, 6)[: dims + 2] if dims < 3 else (1, 2, 3, 4, 5)
    shape = ", ".join(map(str, image))
    made = []
    for size in sizes:
        scales = ", ".join(["None"] * 3)
        made.append(f"x({shape}), {size}, '{mode}', False, False, {scales}")
        if mode not in ("nearest", "nearest-exact"):
            made.append(f"x({shape}), {size}, '{mode}', True, False, {scales}")
    return made


_NONE = "None, None, None"
_PLAIN = [
    *(_sizes("nearest", 1, "(7,)", "(2,)")),
    *(_sizes("nearest", 2, "(10, 8)", "(3, 3)", "(5, 4)")),
    *(_sizes("nearest-exact", 2, "(7, 9)", "(2, 3)")),
    *(_sizes("nearest", 3, "(6, 8, 10)", "(2, 3, 4)")),
    *(_sizes("linear", 1, "(11,)", "(3,)")),
    *(_sizes("bilinear", 2, "(10, 8)", "(3, 9)", "(1, 1)", "(5, 4)")),
    *(_sizes("bicubic", 2, "(9, 7)", "(3, 2)")),
    *(_sizes("trilinear", 3, "(6, 5, 7)", "(2, 2, 2)")),
    f"x(1, 2, 9, 11), (4, 3), 'bilinear', False, True, {_NONE}",
    f"x(1, 2, 9, 11), (13, 20), 'bicubic', False, True, {_NONE}",
    f"x(1, 2, 9, 11), (4, 3), 'bicubic', True, True, {_NONE}",
    "x(1, 2, 5, 5), (7, 7), 'bilinear', False, False, None, 1.5, 1.5",
    "x(1, 2, 5, 5), (7, 7), 'nearest', False, False, None, 1.5, 1.5",
    f"x(0, 3, 4, 4), (2, 2), 'bilinear', False, False, {_NONE}",
    f"x(2, 5, 4, 6).contiguous(memory_format=m.channels_last), (7, 3), 'bilinear', False, False, {_NONE}",
    f"x(2, 5, 4, 6).contiguous(memory_format=m.channels_last), (7, 3), 'nearest', False, False, {_NONE}",
]
_BACKWARD = [
    f"x(2, 3, 10, 8), (2, 3, 5, 4), 2, 'bilinear', False, False, {_NONE}",
    f"x(2, 3, 3, 2), (2, 3, 5, 4), 2, 'nearest', False, False, {_NONE}",
    f"x(1, 2, 4, 3), (1, 2, 9, 11), 2, 'bicubic', False, True, {_NONE}",
]
_PLACES = "x(2, 4, 3, 2, low=-1.3, high=1.3)"
_PLACES_3D = "x(1, 2, 3, 4, 3, low=-1.3, high=1.3)"
_FEW_PLACES = "x(1, 2, 2, 2, low=-1.3, high=1.3)"
_FEW_GRID = [
    f"x(1, 1, 3, 3), {_FEW_PLACES}, {mode}, {padding}, {align}"
    for mode in (0, 1, 2)
    for padding in (0, 1, 2)
    for align in (True, False)
]
_FEW_GRID_3D = [
    f"x(1, 1, 2, 3, 2), x(1, 1, 2, 2, 3, low=-1.3, high=1.3), {mode}, {padding}, True" for mode in (0, 1) for padding in (0, 1, 2)
]
_GRID = [
    *(
        f"x(2, 3, 5, 6), {_PLACES}, {mode}, {padding}, {align}"
        for mode in (0, 1, 2)
        for padding in (0, 1, 2)
        for align in (True, False)
    ),
    *(f"x(1, 2, 3, 4, 5), {_PLACES_3D}, {mode}, {padding}, True" for mode in (0, 1) for padding in (0, 1, 2)),
    *("x(1, 18, 3, 3), x(1, 9, 9, 2), 0, 0, False", "x(0, 2, 3, 3), x(0, 2, 2, 2), 0, 0, False"),
    "x(1, 0, 3, 3), x(1, 2, 2, 2), 0, 0, False",
]

SAMPLES = {
    "_interpolate": _PLAIN,
    "_interpolate_backward": _BACKWARD,
    "grid_sampler": [*_FEW_GRID, *_FEW_GRID_3D, *_GRID],
    "grid_sampler_2d": [*_FEW_GRID[:2], *_GRID[:2]],
    "grid_sampler_3d": [*_FEW_GRID_3D[:2], *_GRID[18:20]],
    "affine_grid_generator": [
        *("x(2, 2, 3), (2, 1, 4, 5), True", "x(2, 2, 3), (2, 1, 4, 5), False", "x(1, 3, 4), (1, 1, 2, 3, 4), False"),
        "x(1, 2, 3), (1, 1, 1, 3), False",
    ],
}
DTYPES = dict.fromkeys(SAMPLES, "floating") | {"affine_grid_generator": "floats"}
ERRORS = {
    "_interpolate": [
        (f"x(1, 1, 4), (2, 2), 'bilinear', False, False, {_NONE}", RuntimeError, "two dimensions more"),
        (f"x(1, 1, 4, 4), (0, 2), 'bilinear', False, False, {_NONE}", RuntimeError, "should be greater than 0"),
        (f"x(1, 1, 4, 4), (-1, 2), 'nearest', False, False, {_NONE}", RuntimeError, "should be greater than 0"),
        (f"x(1, 1, 4, 4), (2, 2), 'nothing', False, False, {_NONE}", ValueError, "mode 'nothing' is not one"),
        (f"ints(1, 1, 4, 4, high=3), (2, 2), 'nearest', False, False, {_NONE}", NotImplementedError, "not implemented for 'Long'"),
        (f"x(1, 1, 4, 4), (2**40, 2), 'nearest', False, False, {_NONE}", RuntimeError, "too large"),
    ],
    "grid_sampler": [
        ("x(1, 1, 4, 4), x(1, 2, 2, 3), 0, 0, True", RuntimeError, "expected grid to have size 2 in last dimension"),
        ("x(1, 1, 4, 4), x(2, 2, 2, 2), 0, 0, True", RuntimeError, "same batch size"),
        ("x(1, 1, 4), x(1, 2, 2), 0, 0, True", RuntimeError, "expected 4D or 5D input"),
        ("x(1, 1, 0, 4), x(1, 2, 2, 2), 0, 0, True", RuntimeError, "non-empty spatial dimensions"),
        ("x(1, 1, 2, 2, 2), x(1, 2, 2, 2, 3), 2, 0, True", RuntimeError, "bicubic interpolation only supports 4D input"),
        ("x(1, 1, 4, 4), x(1, 2, 2, 2).double(), 0, 0, True", RuntimeError, "same dtype"),
    ],
    "affine_grid_generator": [("x(1, 2, 3), (2, 1, 4, 5), True", RuntimeError, "Expected a batch of 2D affine matrices")],
}
SKIPS = {
    ("grid_sampler", "gradgrad"): "the gradient of sampled places has none, as in PyTorch",
    ("grid_sampler_2d", "gradgrad"): "the gradient of sampled places has none, as in PyTorch",
    ("grid_sampler_3d", "gradgrad"): "the gradient of sampled places has none, as in PyTorch",
}
SKIPS |= {
    (name, "parity"): "PyTorch computes places in 16 bits; tests/parity/test_layers.py compares in float64"
    for name in ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
}
