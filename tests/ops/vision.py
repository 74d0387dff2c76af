"""Samples of ops over boxes, of convolution at offset places and of colours of pictures: boxes inside, across the edge and outside of images,
smaller than a pixel and turned inside out, all modes, groups and strides."""

_BOXES = "[[0, 0.2, 0.7, 5.1, 3.9], [1, -3.0, 1.3, 2.2, 9.4], [0, 2.1, 2.2, 2.3, 2.4], [1, 20.0, 20.0, 30.0, 30.0], [0, 4.5, 3.5, 1.5, 0.5]]"
_ROIS = f"m.tensor({_BOXES}).to(x(1).detach().dtype)"
_FEW = "m.tensor([[0, 0.2, 0.3, 2.1, 2.6], [0, -1.0, 0.5, 1.2, 4.0]]).to(x(1).detach().dtype)"
_MODES = [
    *(f"1.0, 2, 3, {ratio}, {aligned}, 'align'" for ratio in (-1, 2) for aligned in (True, False)),
    *("0.5, 2, 3, -1, True, 'ps_align'", "1.0, 2, 3, 2, True, 'ps_align'", "0.5, 2, 3, -1, False, 'ps_pool'"),
]
_FEW_MODES = ["1.0, 1, 2, 2, True, 'align'", "1.0, 1, 2, 2, True, 'ps_align'", "1.0, 1, 2, -1, True, 'ps_pool'"]


def _plane(how):
    return "6" if "ps" in how else "3"


_AVERAGE = [
    *(f"x(1, 2, 3, 3), {_FEW}, {how}" for how in _FEW_MODES),
    *(f"x(2, {_plane(how)}, 5, 6), {_ROIS}, {how}" for how in _MODES),
    "x(2, 40, 5, 400), m.tensor([[1, 2.0, 1.0, 390.0, 4.0]]).to(x(1).detach().dtype), 1.0, 2, 2, 1, True, 'align'",
    "x(0, 2, 3, 3), x(0, 5), 1.0, 1, 2, 2, True, 'align'",
]


def _average_backward(images, rois, how, sizes):
    bins = how.split(", ")[1:3]
    channels = sizes[1] // (int(bins[0]) * int(bins[1])) if "ps" in how else sizes[1]
    return f"x({images}, {channels}, {bins[0]}, {bins[1]}), {rois}, {sizes}, {how}"


_AVERAGE_BACKWARD = [
    *(_average_backward(2, _FEW, how, (1, 2, 3, 3)) for how in _FEW_MODES),
    *(_average_backward(5, _ROIS, how, (2, 6, 5, 6)) for how in _MODES),
]
_COLUMNS = "[2, 2], [1, 1], [0, 0], [1, 1]"
_STRIDED = "[3, 2], [2, 1], [1, 2], [1, 2]"  # of 5 x 6: 3 x 8
_MOVED = "x(2, 2 * 2 * 6, 3, 8, low=-2.3, high=2.3)"
SAMPLES = {
    "_adjust_pixels": [
        *(f"ints(9, 7, {lanes}, high=256).to(m.uint8), '{change}', {factor}" for lanes in (1, 4) for change in ("brightness", "contrast", "saturation", "hue") for factor in (0.7, -0.3)),
        "ints(200, 200, 4, high=256).to(m.uint8), 'contrast', 1.6",
        "ints(3, 2, 4, high=256).to(m.uint8).transpose(0, 1), 'hue', 0.25",
        "ints(0, 2, 4, high=256).to(m.uint8), 'contrast', 0.5",
    ],
    "_planes_of_pixels": [
        *(f"ints(9, 7, {lanes}, high=256).to(m.uint8), x({channels}, 256), {mirrored}" for lanes, channels in ((1, 1), (4, 1), (4, 3), (4, 4)) for mirrored in (False, True)),
        "ints(300, 200, 4, high=256).to(m.uint8)[20:, 3:190], x(3, 256), True",
        "ints(3, 2, 4, high=256).to(m.uint8).transpose(0, 1), x(256, 3).t()",
        "ints(0, 2, 4, high=256).to(m.uint8), x(3, 256)",
    ],
    "nms": [
        "pos(30, 2).cumsum(1).repeat(1, 2) + m.tensor([0, 0, 1, 1]).to(x(1).dtype), distinct(30), 0.5",
        "m.tensor([[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 2, 1], [5, 5, 5, 5]]).to(x(1).dtype), m.tensor([1, 1, 2, 0]).to(x(1).dtype), 0.5",
        "x(0, 4), x(0), 0.5",
    ],
    "_roi_average": _AVERAGE,
    "_roi_average_backward": _AVERAGE_BACKWARD,
    "_roi_max": [
        f"distinct(1, 2, 3, 3), {_FEW}, 1.0, 1, 2",
        *(f"distinct(2, 3, 5, 6), {_ROIS}, {scale}, 2, 3" for scale in (1.0, 0.5)),
        "x(0, 2, 3, 3), x(0, 5), 1.0, 1, 2",
    ],
    "_roi_max_backward": [
        f"x(2, 2, 1, 2), {_FEW}, ints(2, 2, 1, 2, high=9), (1, 2, 3, 3)",
        f"x(5, 3, 2, 3), {_ROIS}, ints(5, 3, 2, 3, high=30) - 1, (2, 3, 5, 6)",
    ],
    "_deform_columns": [
        f"x(1, 2, 3, 3), x(1, 8, 2, 2, low=-1.3, high=1.3), None, {_COLUMNS}",
        f"x(1, 2, 3, 2), x(1, 8, 2, 1, low=-1.3, high=1.3), x(1, 4, 2, 1), {_COLUMNS}",
        f"x(2, 4, 5, 6), {_MOVED}, x(2, 12, 3, 8), {_STRIDED}",
        "x(1, 2, 20, 20), x(1, 2, 20, 20, low=-2.3, high=2.3), None, [1, 1], [1, 1], [0, 0], [1, 1]",
        f"x(0, 2, 3, 3), x(0, 8, 2, 2), None, {_COLUMNS}",
    ],
    "_deform_columns_backward": [
        f"x(1, 8, 4), x(1, 2, 3, 3), x(1, 8, 2, 2, low=-1.3, high=1.3), None, {_COLUMNS}",
        f"x(2, 24, 24), x(2, 4, 5, 6), {_MOVED}, x(2, 12, 3, 8), {_STRIDED}",
    ],
    "deform_conv2d": [
        "x(1, 1, 3, 3), x(1, 8, 2, 2, low=-1.3, high=1.3), x(2, 1, 2, 2), x(2)",
        f"x(2, 4, 5, 6), {_MOVED}, x(6, 2, 3, 2), x(6), (2, 1), (1, 2), (1, 2), x(2, 12, 3, 8)",
        "x(1, 4, 5, 6), x(1, 2, 5, 6, low=-1.3, high=1.3), x(3, 4, 1, 1)",
    ],
}
DTYPES = dict.fromkeys(SAMPLES, "floating")
REFERENCES = {
    "_adjust_pixels": "as_pillow_adjusts(self, change, factor)",
    "_planes_of_pixels": "as_planes(self, table, mirrored)",
}
ERRORS = {
    "_adjust_pixels": [
        ("ints(4, 4, 3, high=9).to(m.uint8), 'hue', 0.1", RuntimeError, "a picture is"),
        ("ints(4, 4, 4, high=9).to(m.uint8), 'sharpness', 0.1", ValueError, "not 'sharpness'"),
        ("ints(4, 4, 4, high=9).to(m.uint8), 'hue', 1.1", ValueError, "hue cannot be changed by 1.1"),
        ("ints(4, 4, 4, high=9).to(m.uint8), 'contrast', float('nan')", ValueError, "contrast cannot be changed"),
        ("ints(4, 4, 4, high=9), 'hue', 0.1", NotImplementedError, "not implemented for 'Long'"),
    ],
    "_planes_of_pixels": [
        ("ints(4, 4, 3, high=9).to(m.uint8), x(3, 256)", RuntimeError, "a picture is"),
        ("ints(4, 4, 4, high=9).to(m.uint8), x(2, 256)", RuntimeError, "cannot have sizes"),
        ("ints(4, 4, 1, high=9).to(m.uint8), x(3, 256)", RuntimeError, "cannot have sizes"),
        ("ints(4, 4, 4, high=9).to(m.uint8), x(3, 255)", RuntimeError, "cannot have sizes"),
        ("ints(4, 4, 4, high=9), x(3, 256)", NotImplementedError, "not implemented for 'Long'"),
    ],
    "nms": [
        ("x(3), x(3), 0.5", RuntimeError, "boxes should be a 2d tensor, got 1D"),
        ("x(3, 5), x(3), 0.5", RuntimeError, "boxes should have 4 elements in dimension 1, got 5"),
        ("x(3, 4), x(3, 1), 0.5", RuntimeError, "scores should be a 1d tensor, got 2D"),
        ("x(3, 4), x(4), 0.5", RuntimeError, "same number of elements as there are boxes, 3, but got 4"),
        ("x(3, 4), x(3).double(), 0.5", RuntimeError, "same type as scores"),
    ],
    "_roi_average": [
        (f"x(1, 2, 3, 3), x(2, 4), {_FEW_MODES[0]}", RuntimeError, "shape as Tensor.K, 5."),
        (f"x(1, 2, 3, 3), x(2, 5).double(), {_FEW_MODES[0]}", RuntimeError, "the same type as tensor for argument #2 'rois'"),
        (f"x(2, 3, 3), x(2, 5), {_FEW_MODES[0]}", RuntimeError, "expected images"),
        (f"x(1, 2, 3, 3), m.tensor([[1.0, 0, 0, 1, 1]]), {_FEW_MODES[0]}", RuntimeError, "not in the batch"),
        (f"x(1, 2, 3, 3), m.tensor([[float('nan'), 0, 0, 1, 1]]), {_FEW_MODES[0]}", RuntimeError, "not in the batch"),
        ("x(1, 2, 3, 3), x(2, 5), 1.0, 0, 2, 2, True, 'align'", RuntimeError, "must be positive"),
        ("x(1, 2, 3, 3), x(2, 5), 1.0, 2**40, 2, 2, True, 'align'", RuntimeError, "below 32768"),
        ("x(1, 2, 3, 3), x(2, 5), 1.0, 1, 2, 2**40, True, 'align'", RuntimeError, "sampling_ratio must be below"),
        ("x(1, 3, 3, 3), x(2, 5), 1.0, 1, 2, 2, True, 'ps_align'", RuntimeError, "multiple of pooling height"),
        ("x(1, 3, 3, 3), x(2, 5), 1.0, 1, 2, 2, True, 'other'", ValueError, "mode 'other'"),
    ],
    "_roi_max": [("x(1, 2, 3, 3), m.tensor([[-1.0, 0, 0, 1, 1]]), 1.0, 1, 2", RuntimeError, "not in the batch")],
    "_roi_max_backward": [
        (f"x(2, 2, 1, 2), {_FEW}, ints(2, 2, 1, 2, high=9) + 9, (1, 2, 3, 3)", RuntimeError, "outside of the image"),
        (f"x(2, 2, 1, 2), {_FEW}, ints(2, 2, 1, 1, high=9), (1, 2, 3, 3)", RuntimeError, "does not belong"),
    ],
    "deform_conv2d": [
        ("x(1, 1, 3, 3), x(1, 7, 2, 2), x(2, 1, 2, 2)", RuntimeError, "offset at dimension 1 is not valid"),
        ("x(1, 1, 3, 3), x(1, 8, 2, 3), x(2, 1, 2, 2)", RuntimeError, "offset output dims"),
        ("x(1, 1, 3, 3), x(2, 8, 2, 2), x(2, 1, 2, 2)", RuntimeError, "invalid batch size of offset"),
        ("x(1, 1, 3, 3), x(1, 8, 2, 2), x(2, 1, 2, 2), x(3)", RuntimeError, "invalid bias shape"),
        ("x(1, 1, 3, 3), x(1, 8, 2, 2), x(2, 1, 2, 2), mask=x(1, 3, 2, 2)", RuntimeError, "mask.shape.1. is not valid"),
        ("x(1, 1, 1, 1), x(1, 8, 2, 2), x(2, 1, 2, 2)", RuntimeError, "output size too small"),
        ("x(1, 1, 3, 3), x(1, 8, 2, 2), x(2, 1, 2, 2), stride=0", RuntimeError, "stride_h: 0"),
        ("x(1, 3, 3, 3), x(1, 8, 2, 2), x(2, 2, 2, 2)", RuntimeError, "does not fit 3 channels"),
    ],
}
SKIPS = {
    (name, "gradgrad"): "the gradient of moved taps has none, as in torchvision"
    for name in ("_deform_columns", "deform_conv2d")
}
