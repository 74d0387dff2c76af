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
    "_resize_pixels": [
        "ints(9, 7, 4, high=256).to(m.uint8), (12, 5), 'bilinear'",
        "ints(40, 50, 1, high=256).to(m.uint8), (30, 20), 'bicubic'",
        "ints(3, 2, 4, high=256).to(m.uint8).transpose(0, 1), (1, 1), 'bilinear'",
        "ints(9, 12, 4, high=256).to(m.uint8)[2:8, 3:10], (9, 5), 'bicubic'",
        "ints(9, 12, 1, high=256).to(m.uint8)[2:8, 3:10], (9, 5), 'bilinear'",
    ],
    "grid_sampler": [*_FEW_GRID, *_FEW_GRID_3D, *_GRID],
    "_grid_sampler_2d_cpu_fallback": [*_FEW_GRID[:2], *_GRID[:2]],
    "grid_sampler_2d": [*_FEW_GRID[:2], *_GRID[:2]],
    "grid_sampler_3d": [*_FEW_GRID_3D[:2], *_GRID[18:20]],
    "affine_grid_generator": [
        *("x(2, 2, 3), (2, 1, 4, 5), True", "x(2, 2, 3), (2, 1, 4, 5), False", "x(1, 3, 4), (1, 1, 2, 3, 4), False"),
        "x(1, 2, 3), (1, 1, 1, 3), False",
    ],
}
_UP = {1: "x(2, 3, 5), (7,)", 2: "x(2, 3, 5, 4), (7, 9)", 3: "x(1, 2, 3, 4, 5), (6, 3, 7)"}
_FEW_UP = {1: "x(1, 2, 4), (7,)", 2: "x(1, 1, 3, 4), (4, 3)", 3: "x(1, 1, 2, 3, 2), (3, 2, 3)"}
_NAMES = {
    **{f"upsample_nearest{n}d": (n, "") for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": (n, "") for n in (1, 2, 3)},
    **{name: (int(name.removesuffix("_aa")[-2]), ", True") for name in (
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bilinear2d_aa",
        "_upsample_bicubic2d_aa")},
}
for _name, (_n, _corners) in _NAMES.items():
    _image = _UP[_n].split(", (")[0]
    # with antialiasing PyTorch reads memory that nobody wrote where a place lies beyond the picture
    _scales = ["1.5", "2.3" if _name.endswith("_aa") else "1.5", "1.5"][:_n]
    SAMPLES[_name] = [f"{_FEW_UP[_n]}{_corners}", f"{_UP[_n]}{_corners}", f"{_UP[_n]}{_corners.replace('True', 'False')}, {', '.join(_scales)}"]
    SAMPLES[f"{_name}.vec"] = [f"{_FEW_UP[_n]}{_corners}, None", f"{_UP[_n]}{_corners}, None", f"{_image}, None{_corners.replace('True', 'False')}, {[1.5, 2.0, 0.7][:_n]}"]
SAMPLES |= {
    "interpolate": [
        *("x(1, 1, 4, 3), (5, 5)", "x(1, 1, 3, 4), (5, 5), mode='bilinear'", "x(2, 3, 5), (7,)", "x(2, 3, 5, 4), (7, 9)", "x(2, 3, 5, 4), None, [1.7, 1.7]", "x(1, 2, 3, 4, 5), scale_factor=(2, 1.0, 0.5)"),
        *(f"x(2, 3, 5, 4), (3, 3), mode='{mode}'" for mode in ("nearest-exact", "area", "bilinear", "bicubic")),
        *("x(2, 3, 5), (9,), mode='linear', align_corners=True", "x(1, 2, 3, 4, 5), (6, 6, 6), mode='trilinear'", "x(2, 3, 5), (3,), mode='area'"),
        "x(1, 2, 3, 4, 5), (2, 2, 2), mode='area'",
        "x(2, 3, 5, 4), scale_factor=(1.7, 0.6), mode='bilinear', recompute_scale_factor=True",
        "x(1, 2, 9, 11), (4, 5), mode='bicubic', antialias=True",
    ],
    "grid_sample": [
        *(f"x(1, 1, 3, 3), {_FEW_PLACES}, '{mode}', 'border', True" for mode in ("bilinear", "nearest", "bicubic")),
        *(f"x(2, 3, 5, 6), {_PLACES}, '{mode}', 'border', True" for mode in ("bilinear", "nearest", "bicubic")),
        *(f"x(2, 3, 5, 6), {_PLACES}, padding_mode='{how}', align_corners=False" for how in ("zeros", "reflection")),
    ],
    "affine_grid": ["x(2, 2, 3), (2, 1, 4, 5), True", "x(1, 3, 4), (1, 1, 2, 3, 4), False"],
}
DTYPES = dict.fromkeys(SAMPLES, "floating") | dict.fromkeys(("affine_grid_generator", "affine_grid"), "floats")
DTYPES |= dict.fromkeys((name for name in SAMPLES if "upsample" in name or name == "interpolate"), "floats")
REFERENCES = {
    "_resize_pixels": "as_pillow_resizes(self, output_size, mode)",
    "affine_grid_generator": "places_of_pixels(theta, size[2:], align_corners)",
}
ERRORS = {
    "_resize_pixels": [
        ("ints(4, 4, 3, high=9).to(m.uint8), (2, 2), 'bilinear'", RuntimeError, "a picture is"),
        ("ints(4, 4, 4, high=9).to(m.uint8), (2,), 'bilinear'", RuntimeError, "height and width"),
        ("ints(4, 4, 4, high=9).to(m.uint8), (2, 0), 'bilinear'", RuntimeError, "greater than 0"),
        ("ints(4, 4, 4, high=9).to(m.uint8), (2, 2), 'nearest'", ValueError, "not 'nearest'"),
        ("ints(4, 4, 4, high=9), (2, 2), 'bilinear'", NotImplementedError, "not implemented for 'Long'"),
    ],
    "_interpolate": [
        (f"x(1, 1, 4), (2, 2), 'bilinear', False, False, {_NONE}", RuntimeError, "two dimensions more"),
        (f"x(1, 1, 4, 4), (0, 2), 'bilinear', False, False, {_NONE}", RuntimeError, "should be greater than 0"),
        (f"x(1, 1, 4, 4), (-1, 2), 'nearest', False, False, {_NONE}", RuntimeError, "should be greater than 0"),
        (f"x(1, 1, 4, 4), (2, 2), 'nothing', False, False, {_NONE}", ValueError, "mode 'nothing' is not one"),
        (f"ints(1, 1, 4, 4, high=3), (2, 2), 'nearest', False, False, {_NONE}", NotImplementedError, "not implemented for 'Long'"),
        (f"x(1, 1, 4, 4), (2**40, 2), 'nearest', False, False, {_NONE}", RuntimeError, "too large"),
    ],
    "grid_sampler": [
        ("x(1, 1, 4, 4), x(1, 2, 2, 3), 0, 0, True", RuntimeError, "the last dimension of the grid has size 2"),
        ("x(1, 1, 4, 4), x(2, 2, 2, 2), 0, 0, True", RuntimeError, "same batch size"),
        ("x(1, 1, 4), x(1, 2, 2), 0, 0, True", RuntimeError, "expected 4D or 5D input"),
        ("x(1, 1, 0, 4), x(1, 2, 2, 2), 0, 0, True", RuntimeError, "non-empty spatial dimensions"),
        ("x(1, 1, 2, 2, 2), x(1, 2, 2, 2, 3), 2, 0, True", RuntimeError, "bicubic interpolation only supports 4D input"),
        ("x(1, 1, 4, 4), x(1, 2, 2, 2).double(), 0, 0, True", RuntimeError, "same dtype"),
    ],
    "interpolate": [
        ("x(1, 1, 4, 4)", ValueError, "either size or scale_factor should be defined"),
        ("x(1, 1, 4, 4), (2, 2), (2.0, 2.0)", ValueError, "only one of size or scale_factor"),
        ("x(1, 1, 4, 4), (2,)", ValueError, "takes a number for each dimension of the image"),
        ("x(1, 1, 4, 4), (2, 2, 2)", ValueError, "takes a number for each dimension of the image"),
        ("x(1, 1, 4, 4), (2, 2), align_corners=True", ValueError, "align_corners means something for the modes 'linear'"),
        ("x(1, 1, 4, 4), (2, 2), recompute_scale_factor=True", ValueError, "recompute_scale_factor is not meaningful"),
        ("x(1, 1, 4, 4), (2, 2), mode='nearest', antialias=True", ValueError, "Anti-alias option is restricted to bilinear and bicubic"),
        ("x(1, 1, 4, 4), (2, 2), mode='linear'", NotImplementedError, "Got 4D input, but linear mode needs 3D input"),
        ("x(1, 1, 4, 4), (2, 2), mode='none'", NotImplementedError, "Only 3D, 4D and 5D input Tensors supported"),
        ("x(1, 4), ()", NotImplementedError, "Only 3D, 4D and 5D input Tensors supported"),
    ],
    "upsample_nearest2d.vec": [("x(1, 1, 4, 4), None, None", RuntimeError, "Must specify exactly one of output_size and scale_factors")],
    "grid_sample": [
        ("x(1, 1, 4, 4), x(1, 2, 2, 2), 'none'", ValueError, "expected mode to be 'bilinear', 'nearest' or 'bicubic'"),
        ("x(1, 1, 4, 4), x(1, 2, 2, 2), 'nearest', 'none'", ValueError, "expected padding_mode to be 'zeros', 'border', or"),
    ],
    "affine_grid": [
        ("ints(1, 2, 3, high=2), (1, 1, 4, 5), True", ValueError, "theta has to be floating point"),
        ("x(1, 2, 3), (1, 1, 4), True", NotImplementedError, "only supports 4D and 5D sizes"),
        ("x(1, 2, 4), (1, 1, 4, 5), True", ValueError, "affine matrices, not"),
        ("x(1, 2, 3), (1, 1, 0, 5), True", ValueError, "Expected non-zero, positive output size"),
    ],
    "affine_grid_generator": [("x(1, 2, 3), (2, 1, 4, 5), True", RuntimeError, "affine matrices, not")],
}
SKIPS = {
    (name, "parity"): "PyTorch computes places in 16 bits; tests/parity/test_layers.py compares in float64"
    for name in ("grid_sampler", "_grid_sampler_2d_cpu_fallback", "grid_sampler_2d", "grid_sampler_3d", "grid_sample")
}
