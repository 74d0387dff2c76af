"""Every transform on tensors of every dtype and layout, and with bad arguments: torchvision's numbers, dtype and shape, or
its kind of error.

A case is a call, as text, that both packages run with the same seed on the same tensor. `F` is
`transforms.functional`, `T` `transforms`, `G` `transforms.v2.functional`, `V` `transforms.v2`, `x` the tensor.
"""

import importlib
import random
import warnings

import numpy as np
import pytest

import rushlight
from rushlight.vision import ops, transforms, tv_tensors, utils
from rushlight.vision.transforms import v2
from tests.parity import torchvision as oracle

torch = pytest.importorskip("torch")
torchvision = oracle.load()
their = {
    name: importlib.import_module(f"torchvision.{name}")
    for name in ("transforms", "transforms.v2", "tv_tensors", "utils", "ops")
}


def names(m, plain, second, kinds, drawing, boxes):
    """What cases call."""
    return {
        "m": m,
        "F": plain.functional,
        "T": plain,
        "G": second.functional,
        "V": second,
        "K": kinds,
        "U": drawing,
        "O": boxes,
        "I": plain.InterpolationMode,
        "nan": float("nan"),
        "inf": float("inf"),
    }


THEIRS = names(
    *(torch, their["transforms"], their["transforms.v2"], their["tv_tensors"]),
    *(their["utils"], their["ops"]),
)
OURS = names(rushlight, transforms, v2, tv_tensors, utils, ops)

# In v1 and v2; {} is the module of functions.
FUNCTIONS = [
    *("{}.hflip(x)", "{}.vflip(x)", "{}.crop(x, 1, 2, 3, 4)", "{}.crop(x, -2, -1, 6, 20)"),
    *("{}.crop(x, 2, 3, 0, 4)", "{}.center_crop(x, 4)", "{}.center_crop(x, (3, 12))"),
    *("{}.five_crop(x, 3)", "{}.ten_crop(x, (3, 4), True)", "{}.pad(x, 2)", "{}.pad(x, (1, 2))"),
    *("{}.pad(x, (1, 2, 3, 0), fill=3)", "{}.pad(x, 2, padding_mode='edge')"),
    *("{}.pad(x, (1, 2), padding_mode='reflect')", "{}.pad(x, 2, padding_mode='symmetric')"),
    *("{}.pad(x, -1)", "{}.pad(x, (-1, 2, 1, -2))", "{}.pad(x, (-1, 1), padding_mode='symmetric')"),
    *("{}.resize(x, (4, 5))", "{}.resize(x, 4)", "{}.resize(x, (12, 15))", "{}.resize(x, [8, 9])"),
    *("{}.resize(x, (4, 12), antialias=False)", "{}.resize(x, 4, I.NEAREST)"),
    *("{}.resize(x, (5, 13), I.NEAREST_EXACT)", "{}.resize(x, (4, 13), I.BICUBIC)"),
    *("{}.resize(x, 12, I.BICUBIC, antialias=False)", "{}.resize(x, 4, max_size=5)"),
    *(
        "{}.resized_crop(x, 1, 1, 4, 5, (7, 3))",
        "{}.rotate(x, 30)",
        "{}.rotate(x, 90, expand=True)",
    ),
    *("{}.rotate(x, 33, I.BILINEAR, True, fill=[1])", "{}.rotate(x, -20, center=[1, 2])"),
    *("{}.affine(x, 20, [1, 2], 1.2, [5, 3])", "{}.affine(x, 20, [1, 2], 0.8, 5, I.BILINEAR, 2)"),
    "{}.perspective(x, [[0, 0], [8, 0], [8, 7], [0, 7]], [[1, 0], [7, 1], [8, 6], [0, 7]])",
    "{}.perspective(x, [[0, 0], [8, 0], [8, 7], [0, 7]], [[1, 0], [7, 1], [8, 6], [0, 7]], I.NEAREST, 1)",
    "{}.elastic_transform(x, m.linspace(-0.5, 0.5, 144).view(1, 8, 9, 2))",
    *(
        "{}.elastic_transform(x, m.zeros(1, 8, 9, 2), I.NEAREST)",
        "{}.erase(x, 1, 2, 3, 4, m.tensor(1))",
    ),
    *("{}.adjust_brightness(x, 0)", "{}.adjust_brightness(x, 1.7)", "{}.adjust_contrast(x, 0.4)"),
    *("{}.adjust_contrast(x, 1.8)", "{}.adjust_saturation(x, 0.3)", "{}.adjust_saturation(x, 2.5)"),
    *(
        "{}.adjust_hue(x, 0.2)",
        "{}.adjust_hue(x, -0.4)",
        "{}.adjust_hue(x, 0)",
        "{}.adjust_gamma(x, 0.6)",
    ),
    *(
        "{}.adjust_gamma(x, 2, gain=1.4)",
        "{}.adjust_sharpness(x, 0.3)",
        "{}.adjust_sharpness(x, 2)",
    ),
    *("{}.rgb_to_grayscale(x)", "{}.rgb_to_grayscale(x, 3)", "{}.invert(x)", "{}.posterize(x, 3)"),
    *("{}.posterize(x, 0)", "{}.solarize(x, 1)", "{}.solarize(x, 0.3)", "{}.autocontrast(x)"),
    *("{}.equalize(x)", "{}.gaussian_blur(x, 3)", "{}.gaussian_blur(x, [3, 5], [0.5, 1.2])"),
    *("{}.normalize(x, [0.5], [0.25])", "{}.normalize(x, [0.1, 0.2, 0.3], [1, 2, 3])"),
    *("{}.convert_image_dtype(x, m.uint8)", "{}.convert_image_dtype(x, m.float32)"),
    *("{}.convert_image_dtype(x, m.int16)", "{}.convert_image_dtype(x, m.int64)"),
    *("{}.convert_image_dtype(x, m.float64)", "{}.get_dimensions(x)", "{}.get_image_size(x)"),
    "{}.get_image_num_channels(x)",
]
SECOND = [
    *("G.to_dtype(x, m.float32, scale=True)", "G.to_dtype(x, m.uint8, scale=True)"),
    *("G.to_dtype(x, m.float16, scale=True)", "G.to_dtype(x, m.int32)", "G.to_dtype(x, m.bool)"),
    *("G.grayscale_to_rgb(x)", "G.permute_channels(x, list(range(x.shape[-3]))[::-1])"),
    *("G.gaussian_noise(x)", "G.gaussian_noise(x, 0.1, 0.3, clip=False)", "G.get_size(x)"),
    *("G.uniform_temporal_subsample(x, 2)", "G.to_pure_tensor(K.Image(x)) if x.ndim > 2 else x"),
    *(
        "G.horizontal_flip_image(x)",
        "G.resize_mask(x, [4, 5])",
        "G.rotate_mask(x, 30, expand=True)",
    ),
    *(
        "G.pad_mask(x, 2, fill=1)",
        "G.crop_mask(x, 1, 1, 4, 4)",
        "G.affine_mask(x, 9, [1, 1], 1, [0, 0])",
    ),
    "G.elastic_mask(x, m.zeros(1, 8, 9, 2))",
]
# In v1 and v2; {} is the module of classes.
CLASSES = [
    *("{}.CenterCrop(5)(x)", "{}.FiveCrop(3)(x)", "{}.Pad(2, 1)(x)", "{}.RandomCrop(5, 1)(x)"),
    *("{}.RandomCrop((4, 12), pad_if_needed=True)(x)", "{}.RandomHorizontalFlip()(x)"),
    *("{}.RandomVerticalFlip(0.9)(x)", "{}.RandomResizedCrop(5)(x)", "{}.RandomRotation(40)(x)"),
    *("{}.RandomAffine(20, (0.1, 0.2), (0.8, 1.2), 10)(x)", "{}.RandomPerspective(0.5, 1.0)(x)"),
    *("{}.ColorJitter(0.4, 0.3, 0.2, 0.1)(x)", "{}.RandomGrayscale(0.9)(x)", "{}.Grayscale(3)(x)"),
    *("{}.RandomErasing(1.0)(x)", "{}.RandomErasing(1.0, value='random')(x)"),
    *("{}.RandomErasing(1.0, (0.1, 0.3), (0.5, 2), 2)(x)", "{}.GaussianBlur(3)(x)"),
    *(
        "{}.ElasticTransform(20.0, 3.0)(x)",
        "{}.RandomInvert(0.9)(x)",
        "{}.RandomPosterize(3, 0.9)(x)",
    ),
    *("{}.RandomSolarize(0.5, 0.9)(x)", "{}.RandomAdjustSharpness(2, 0.9)(x)", "{}.Resize(5)(x)"),
    *(
        "{}.RandomAutocontrast(0.9)(x)",
        "{}.RandomEqualize(0.9)(x)",
        "{}.Normalize([0.5], [0.5])(x)",
    ),
    *("{}.ConvertImageDtype(m.float32)(x)", "{}.AutoAugment()(x)", "{}.RandAugment()(x)"),
    *("{}.TrivialAugmentWide()(x)", "{}.AugMix()(x)"),
    *(
        "{}.RandomApply([{}.RandomVerticalFlip(1)], 0.5)(x)",
        "{}.RandomChoice([{}.Pad(1), {}.Pad(2)])(x)",
    ),
    *("{}.RandomOrder([{}.Pad(1), {}.CenterCrop(5)])(x)", "{}.Lambda(lambda y: y)(x)"),
]
SECOND_CLASSES = [
    *("V.RandomZoomOut(1, p=0.9)(x)", "V.RandomShortestSize(5)(x)", "V.RandomResize(4, 9)(x)"),
    *("V.ScaleJitter((8, 8))(x)", "V.RandomPhotometricDistort(p=0.9)(x)", "V.RGB()(x)"),
    *("V.RandomChannelPermutation()(x)", "V.GaussianNoise()(x)", "V.ToDtype(m.float32, True)(x)"),
    *("V.Identity()(x)", "V.ToPureTensor()(x)", "V.UniformTemporalSubsample(2)(x)"),
    *(
        "V.MixUp(num_classes=3)(x, m.tensor([0, 1]))",
        "V.CutMix(num_classes=3)(x, m.tensor([0, 1]))",
    ),
]
CALLS = [
    *(call.format("F") for call in FUNCTIONS),
    *(call.format("G") for call in FUNCTIONS),
    *SECOND,
    *(call.replace("{}", "T") for call in CLASSES),
    *(call.replace("{}", "V") for call in CLASSES),
    *SECOND_CLASSES,
]

DTYPES = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "bool",
]
LAYOUTS = {
    "image": (3, 8, 9),
    "batch": (2, 3, 8, 9),
    "clips": (2, 2, 3, 8, 9),
    "grey": (1, 8, 9),
    "two channels": (2, 8, 9),
    "four channels": (4, 8, 9),
    "flat": (8, 9),
    "no images": (0, 3, 8, 9),
    "no pixels": (3, 0, 9),
    "one pixel": (3, 1, 1),
    "channels last": (2, 3, 8, 9),
    "strided": (2, 3, 8, 9),
    "row": (9,),
}


def tensor(module, dtype, layout):
    """The same numbers for both."""
    shape = LAYOUTS[layout]
    if layout == "strided":
        shape = (2, 3, 16, 27)
    values = np.random.default_rng(3).integers(0, 256, shape)
    if dtype == "bool":
        values = values > 127
    elif dtype == "int8":
        values = values // 2
    elif dtype in ("int16", "int32", "int64"):
        values = values * {"int16": 100, "int32": 2**22, "int64": 2**40}[dtype]
    elif "float" in dtype:
        values = values / 255
    x = module.from_numpy(np.asarray(values)).to(getattr(module, dtype))
    if layout == "channels last":
        x = x.contiguous(memory_format=module.channels_last)
    return x[..., ::2, ::3] if layout == "strided" else x


def outcome(call, module, scope, **more):
    """What comes out: ("value", …), or ("error", its type)."""
    module.manual_seed(7)
    random.seed(7)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "value", eval(call, {**scope, **more})
    except Exception as error:
        return "error", error


def parts(value):
    if isinstance(value, tuple | list):
        return [part for v in value for part in parts(v)]
    return [value]


def described(value):
    if not hasattr(value, "dtype"):
        return value
    return type(value).__name__, str(value.dtype).split(".")[-1], tuple(value.shape)


def numbers_of(value, module):
    plain = value.detach().as_subclass(module.Tensor)
    return (
        plain.to(module.float64).numpy()
        if plain.is_floating_point()
        else np.asarray(plain.numpy(), dtype=object)
    )


# Of pixels, those that may lie on the other side of a rounding, by so much.
CLOSE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 2e-5}


def difference(call, dtype, theirs, ours, numbers=True):
    """In words, or None."""
    expected, found = parts(theirs), parts(ours)
    if [described(e) for e in expected] != [described(f) for f in found]:
        return f"{[described(e) for e in expected]} but {[described(f) for f in found]}"
    for e, f in zip(expected, found, strict=True):
        if not hasattr(e, "dtype") or not numbers:
            continue
        a, b = numbers_of(e, torch), numbers_of(f, rushlight)
        out = str(e.dtype).split(".")[-1]
        if out in CLOSE:
            bound = max(CLOSE[out], CLOSE.get(dtype, 0))
            bad = ~np.isclose(a, b, rtol=bound, atol=bound, equal_nan=True)
        elif out == "bool":
            bad = a != b
        else:
            scale = float(np.abs(np.asarray(a, dtype=float)).max(initial=0))
            bad = np.abs(np.asarray(a - b, dtype=float)) > max(1, 3e-6 * scale)
        if np.any(bad):
            at = tuple(np.argwhere(bad)[0])
            return f"{int(bad.sum())} of {bad.size} numbers, at {at} {a[at]} but {b[at]}"
    return None


# What torchvision does not take, and says by whatever fails in the middle: images without channels, no pixels, no rows, and
# in v1 videos and empty batches. There ours may give a result or say it in other words.
def unsupported(call, layout):
    first = not any(word in call for word in ("G.", "V."))
    one = (
        layout == "grey" and "normalize(x, [0.1" in call
    )  # makes as many channels as there are means
    return (
        one
        or layout in ("no pixels", "row", "flat")
        or (first and layout in ("clips", "no images"))
    )


# Where numbers are not compared: places of pixels that are computed in 16 bits are those of other pixels, bools have no
# colours between, which v1 rounds otherwise than v2, and the largest integers are beyond those of float32.
PLACED = (
    "rotate",
    "affine",
    "perspective",
    "elastic",
    "Rotation",
    "Affine",
    "Perspective",
    "Elastic",
    "Aug",
)


def numbers_are_free(call, dtype):
    if dtype in ("float16", "bfloat16"):
        return any(word in call for word in PLACED)
    return dtype == "bool" or (
        dtype in ("int32", "int64") and ("utocontrast" in call or "Aug" in call)
    )


def disagreement(call, dtype, layout):
    inputs = tensor(torch, dtype, layout), tensor(rushlight, dtype, layout)
    theirs = outcome(call, torch, THEIRS, x=inputs[0])
    ours = outcome(call, rushlight, OURS, x=inputs[1])
    return verdict(call, dtype, theirs, ours, unsupported(call, layout))


def verdict(call, dtype, theirs, ours, free=False):
    """What is wrong, in words, or None."""
    if theirs[0] == "error":
        if ours[0] == "error" and kind_of(theirs[1]) == kind_of(ours[1]):
            return None
        return None if free else f"{said(theirs)} but {said(ours)}"
    if ours[0] == "error":
        return (
            None
            if free and isinstance(ours[1], TypeError | ValueError)
            else f"a value but {said(ours)}"
        )
    if free and "nan" in call:
        return None
    return difference(call, dtype, theirs[1], ours[1], not numbers_are_free(call, dtype))


def kind_of(error):
    """The name of an error's type; there is too little memory for both."""
    return {"OutOfMemoryError": "RuntimeError"}.get(
        type(error).__name__, type(error).__name__.lstrip("_")
    )


def said(outcome):
    return (
        f"{type(outcome[1]).__name__} ({str(outcome[1])[:90]})"
        if outcome[0] == "error"
        else "a value"
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_transforms(dtype, layout):
    """Every third call, others for every dtype and layout: all of them would take minutes."""
    first = (DTYPES.index(dtype) + list(LAYOUTS).index(layout)) % 3
    wrong = [
        f"{call}: {found}"
        for call in CALLS[first::3]
        if (found := disagreement(call, dtype, layout))
    ]
    assert not wrong, "\n".join(wrong)


# ---- bad arguments ----

BAD = [
    *("{}.resize(x, -3)", "{}.resize(x, 0)", "{}.resize(x, (0, 4))", "{}.resize(x, 2**40)"),
    *(
        "{}.resize(x, (2**40, 2**40))",
        "{}.resize(x, (1, 2, 3))",
        "{}.resize(x, 'a')",
        "{}.resize(x, 5, 'bilinear')",
    ),
    *(
        "{}.resize(x, 5, I.LANCZOS)",
        "{}.resize(x, (5, 5), max_size=9)",
        "{}.resize(x, 5, max_size=4)",
    ),
    *(
        "{}.resize(x, 2.5)",
        "{}.resize(x, None)",
        "{}.resize([1], 3)",
        "{}.resize(None, 3)",
        "{}.resize(x, 5, 17)",
    ),
    *("{}.crop(x, 0, 0, -1, 3)", "{}.crop(x, 0, 0, 2**40, 3)", "{}.crop(x, 2**40, 0, 3, 3)"),
    *(
        "{}.crop(x, 0, 0, 2.5, 3)",
        "{}.crop('x', 0, 0, 1, 1)",
        "{}.center_crop(x, -1)",
        "{}.center_crop(x, (1, 2, 3))",
    ),
    *(
        "{}.center_crop(x, 2**40)",
        "{}.five_crop(x, 99)",
        "{}.five_crop(x, (1, 2, 3))",
        "{}.ten_crop(x, 99)",
    ),
    *(
        "{}.pad(x, -9)",
        "{}.pad(x, 'a')",
        "{}.pad(x, (1, 2, 3))",
        "{}.pad(x, 1, padding_mode='other')",
    ),
    *(
        "{}.pad(x, 9, padding_mode='reflect')",
        "{}.pad(x, 2**40)",
        "{}.pad(x, 1, fill='red')",
        "{}.pad(x, None)",
    ),
    *(
        "{}.pad(x, 1, fill=[1, 2])",
        "{}.pad(x, 1, padding_mode=3)",
        "{}.rotate(x, 'a')",
        "{}.rotate(x, nan)",
    ),
    *(
        "{}.rotate(x, inf)",
        "{}.rotate(x, 20, I.BICUBIC)",
        "{}.rotate(x, 10, center=5)",
        "{}.rotate(x, 10, center=[1])",
    ),
    *(
        "{}.rotate(x, 10, fill=[1, 2])",
        "{}.rotate(x, 10, fill='a')",
        "{}.affine(x, 'a', [0, 0], 1, 0)",
    ),
    *("{}.affine(x, 0, 1, 1, 0)", "{}.affine(x, 0, [1], 1, 0)", "{}.affine(x, 0, [0, 0], 0, 0)"),
    *(
        "{}.affine(x, 0, [0, 0], -1, 0)",
        "{}.affine(x, 0, [0, 0], 1, 'a')",
        "{}.affine(x, 0, [0, 0], 1, [1, 2, 3])",
    ),
    *(
        "{}.affine(x, 0, [0, 0], nan, 0)",
        "{}.affine(x, nan, [0, 0], 1, 0)",
        "{}.affine(x, 0, [nan, 0], 1, 0)",
    ),
    *("{}.affine(x, 0, [0, 0], 1, 0, I.LANCZOS)", "{}.affine(x, 0, [0, 0], 1, 0, center=1)"),
    *("{}.perspective(x, [[0, 0]], [[1, 1]])", "{}.perspective(x, None, None)"),
    "{}.perspective(x, [[0, 0]] * 4, [[0, 0]] * 4)",
    "{}.perspective(x, [[nan, 0], [8, 0], [8, 7], [0, 7]], [[1, 0], [7, 1], [8, 6], [0, 7]])",
    *(
        "{}.elastic_transform(x, None)",
        "{}.elastic_transform(x, m.zeros(1, 3, 3, 2))",
        "{}.elastic_transform(x, m.full((1, 8, 9, 2), nan))",
    ),
    *(
        "{}.adjust_brightness(x, -1)",
        "{}.adjust_brightness(x, nan)",
        "{}.adjust_brightness(x, 'a')",
        "{}.adjust_brightness(None, 1)",
    ),
    *(
        "{}.adjust_contrast(x, -1)",
        "{}.adjust_contrast(x, nan)",
        "{}.adjust_saturation(x, -1)",
        "{}.adjust_saturation(x, inf)",
    ),
    *(
        "{}.adjust_hue(x, 0.6)",
        "{}.adjust_hue(x, -0.6)",
        "{}.adjust_hue(x, nan)",
        "{}.adjust_gamma(x, -1)",
    ),
    *(
        "{}.adjust_gamma(x, nan)",
        "{}.adjust_gamma(x, inf)",
        "{}.adjust_sharpness(x, -1)",
        "{}.adjust_sharpness(x, nan)",
    ),
    *(
        "{}.rgb_to_grayscale(x, 2)",
        "{}.rgb_to_grayscale(3)",
        "{}.invert('x')",
        "{}.posterize(x, -1)",
        "{}.posterize(x, 9)",
    ),
    *(
        "{}.posterize(x, 2.5)",
        "{}.solarize(x, 300)",
        "{}.solarize(x, -1)",
        "{}.solarize(x, nan)",
        "{}.autocontrast(1)",
    ),
    *(
        "{}.equalize(1)",
        "{}.gaussian_blur(x, 4)",
        "{}.gaussian_blur(x, -3)",
        "{}.gaussian_blur(x, 0)",
    ),
    *(
        "{}.gaussian_blur(x, [3, 3, 3])",
        "{}.gaussian_blur(x, 3, 0)",
        "{}.gaussian_blur(x, 3, -1)",
        "{}.gaussian_blur(x, 3, [1, 2, 3])",
    ),
    *(
        "{}.gaussian_blur(x, 2.5)",
        "{}.gaussian_blur(x, 3, nan)",
        "{}.gaussian_blur(x, 99)",
        "{}.normalize(x, [0.5], [0])",
    ),
    *(
        "{}.normalize(x, [0.1, 0.2], [1, 1])",
        "{}.normalize(x, 'a', [1])",
        "{}.normalize(x, [nan], [1])",
        "{}.normalize(None, [0], [1])",
    ),
    *(
        "{}.convert_image_dtype(None, m.uint8)",
        "{}.to_tensor(x)",
        "{}.to_tensor('x')",
        "{}.to_pil_image('x')",
    ),
    *(
        "{}.to_pil_image(x, 'other')",
        "{}.to_pil_image(x[None])",
        "{}.to_pil_image(x[:0])",
        "{}.pil_to_tensor(x)",
        "{}.get_image_size('x')",
    ),
    *(
        "{}.erase('x', 0, 0, 1, 1, 0)",
        "{}.erase(x, 0, 0, 99, 99, m.tensor(0))",
        "{}.get_dimensions(3)",
    ),
]
BAD_SECOND = [
    *(
        "G.to_dtype('x')",
        "G.gaussian_noise(x, 0, -1)",
        "G.gaussian_noise(x, nan)",
        "G.permute_channels(x, [0])",
    ),
    *(
        "G.permute_channels(x, [5, 6, 7])",
        "G.jpeg(x, 0)",
        "G.jpeg(x, 101)",
        "G.uniform_temporal_subsample(x, -1)",
    ),
    *(
        "G.uniform_temporal_subsample(x, 2**40)",
        "G.to_image('x')",
        "G.convert_bounding_box_format(x)",
    ),
    *(
        "G.convert_bounding_box_format(m.ones(2, 4), None, 'XYXY')",
        "G.convert_bounding_box_format(m.ones(2, 4), 'XYXY', 'other')",
    ),
    *(
        "G.convert_bounding_box_format(m.ones(2, 3), 'XYXY', 'XYWH')",
        "G.clamp_bounding_boxes(m.ones(2, 4))",
    ),
    *(
        "G.sanitize_bounding_boxes(m.ones(2, 4))",
        "G.sanitize_bounding_boxes(m.tensor([[5., 5, 1, 1]]), format='XYXY', canvas_size=(9, 9))",
    ),
    *(
        "G.sanitize_bounding_boxes(m.tensor([[nan, 1, 5, 5]]), format='XYXY', canvas_size=(9, 9))",
        "G.sanitize_bounding_boxes(m.ones(2, 4), format='XYXY', canvas_size=(9, 9), min_size=0)",
    ),
    *(
        "G.sanitize_bounding_boxes(m.ones(2, 4), format='XYXY', canvas_size=(9, 9), min_area=-1)",
        "K.BoundingBoxes([[1, 2, 3]], format='XYXY', canvas_size=(4, 4))",
    ),
    *(
        "K.BoundingBoxes([[1, 2, 3, 4]], format='other', canvas_size=(4, 4))",
        "K.BoundingBoxes([[1, 2, 3, 4]], format='XYXY')",
    ),
    *(
        "K.BoundingBoxes([[[1, 2, 3, 4]]], format='XYXY', canvas_size=(4, 4))",
        "K.BoundingBoxes([[1, 2, 3, 4, 5]], format='XYWHR', canvas_size=(4, 4))",
    ),
    *(
        "K.KeyPoints([1, 2, 3], canvas_size=(4, 4))",
        "K.Image('x')",
        "K.Mask('x')",
        "K.Video(m.ones(2))",
        "K.Image(m.ones(2))",
    ),
    *(
        "G.resize(K.BoundingBoxes([[9., 9, 1, 1]], format='XYXY', canvas_size=(8, 9)), (4, 5))",
        "G.horizontal_flip(K.BoundingBoxes([[nan, 1., 2, 3]], format='XYXY', canvas_size=(8, 9)))",
    ),
    *(
        "G.rotate(K.BoundingBoxes([[9., 9, 1, 1]], format='XYXY', canvas_size=(8, 9)), 30)",
        "G.crop(K.BoundingBoxes([[9., 9, 1, 1]], format='XYXY', canvas_size=(8, 9)), 1, 1, 4, 4)",
    ),
]
BAD_CLASSES = [
    *(
        "{}.CenterCrop((1, 2, 3))",
        "{}.CenterCrop('a')",
        "{}.Resize('a')",
        "{}.Resize((1, 2, 3))",
        "{}.Resize(3.5)",
    ),
    *(
        "{}.Pad('a')",
        "{}.Pad((1, 2, 3))",
        "{}.Pad(1, padding_mode='other')",
        "{}.Pad(1, fill='a' if False else {{}})",
    ),
    *(
        "{}.RandomCrop((1, 2, 3))",
        "{}.RandomCrop(99)(x)",
        "{}.RandomCrop(-1)(x)",
        "{}.RandomResizedCrop((1, 2, 3))",
        "{}.RandomResizedCrop(3, scale=1)",
    ),
    *(
        "{}.RandomResizedCrop(3, ratio=1)",
        "{}.RandomRotation(-3)",
        "{}.RandomRotation((1, 2, 3))",
        "{}.RandomRotation('a')",
        "{}.RandomRotation(3, center=1)",
    ),
    *(
        "{}.RandomAffine(-1)",
        "{}.RandomAffine(1, translate=(2, 0))",
        "{}.RandomAffine(1, translate=1)",
        "{}.RandomAffine(1, scale=(0, 1))",
        "{}.RandomAffine(1, scale=(-1, 1))",
    ),
    *(
        "{}.RandomAffine(1, shear=-1)",
        "{}.RandomAffine(1, center=(1, 2, 3))",
        "{}.RandomPerspective(2.0, 1.0)(x)",
        "{}.RandomPerspective(-1, 1.0)(x)",
        "{}.ColorJitter(-1)",
    ),
    *(
        "{}.ColorJitter((2, 1))",
        "{}.ColorJitter(hue=0.6)",
        "{}.ColorJitter(hue=(-1, 1))",
        "{}.ColorJitter('a')",
        "{}.ColorJitter((1, 2, 3))",
        "{}.Grayscale(2)(x)",
    ),
    *(
        "{}.RandomErasing(2.0)",
        "{}.RandomErasing(-1)",
        "{}.RandomErasing(value='a')",
        "{}.RandomErasing(scale=(0.5, 3))",
        "{}.RandomErasing(scale=1)",
        "{}.RandomErasing(ratio=1)",
        "{}.RandomErasing(1.0, value=[1, 2])(x)",
    ),
    *(
        "{}.GaussianBlur(4)",
        "{}.GaussianBlur(0)",
        "{}.GaussianBlur(3, 0)",
        "{}.GaussianBlur(3, (2, 1))",
        "{}.GaussianBlur((3, 3, 3))",
        "{}.GaussianBlur(3, 'a')",
    ),
    *(
        "{}.ElasticTransform('a')",
        "{}.ElasticTransform([1.0, 2.0, 3.0])",
        "{}.ElasticTransform([1])",
        "{}.Normalize([0.5], [0])(x)",
        "{}.RandomApply(3)",
        "{}.RandomChoice(3)",
        "{}.RandomOrder(3)",
    ),
    *(
        "{}.RandomChoice([], p=3)",
        "{}.Lambda(3)",
        "{}.LinearTransformation(m.ones(2, 3), m.ones(2))",
        "{}.LinearTransformation(m.ones(2, 2), m.ones(3))",
        "{}.LinearTransformation(m.eye(4), m.zeros(4))(x)",
    ),
    *(
        "{}.AutoAugment('other')",
        "{}.RandAugment(magnitude=99)(x)",
        "{}.AugMix(severity=11)",
        "{}.AugMix(severity=0)",
        "{}.FiveCrop((1, 2, 3))",
        "{}.TenCrop('a')",
        "{}.RandomPosterize(9, 1)(x)",
        "{}.RandomSolarize(300, 1)(x)",
    ),
    *(
        "{}.RandomAdjustSharpness(-1, 1)(x)",
        "{}.ToTensor()(x)",
        "{}.PILToTensor()(x)",
        "{}.ToPILImage('other')(x)",
        "{}.Compose(3)",
        "{}.ConvertImageDtype(m.uint8)(None)",
    ),
]
BAD_SECOND_CLASSES = [
    *(
        "V.RandomZoomOut(side_range=(0.5, 1))",
        "V.RandomZoomOut(side_range=(4, 1))",
        "V.ScaleJitter(3)(x)",
        "V.RandomShortestSize(0)(x)",
        "V.RandomIoUCrop()(x)",
        "V.RandomResize(5, 2)(x)",
    ),
    *(
        "V.MixUp()(x)",
        "V.MixUp(num_classes=3)(x, m.tensor([0]))",
        "V.CutMix(num_classes=3)(x[None], m.tensor([[0.5]]))",
        "V.CutMix(num_classes=1)(x[None], m.tensor([5]))",
        "V.MixUp(alpha=-1.0, num_classes=3)",
    ),
    *(
        "V.SanitizeBoundingBoxes()(x)",
        "V.SanitizeBoundingBoxes(min_size=0)",
        "V.SanitizeBoundingBoxes(min_area=0)",
        "V.SanitizeBoundingBoxes(labels_getter=3)",
        "V.ToDtype({m.Tensor: m.float32})(K.Mask(x))",
    ),
    *(
        "V.ToDtype('a')",
        "V.GaussianNoise(sigma=-1)(x)",
        "V.JPEG(0)",
        "V.JPEG((5, 1))",
        "V.JPEG((1, 2, 3))",
        "V.JPEG(101)",
        "V.UniformTemporalSubsample(-1)(x)",
        "V.ConvertBoundingBoxFormat('other')",
    ),
    *(
        "V.Resize(None)",
        "V.Resize(None, max_size=(1, 2))",
        "V.RandomPhotometricDistort(p=2)(x)",
        "V.Transform()(x)",
        "V.Compose([])(x)",
        "V.Compose([3])(x)",
    ),
]
# Where the answer is another on purpose: a size of three numbers and modes that are for pictures are refused, a compiled
# part of torchvision's is not there, places and factors that are no numbers give other pixels.
OTHERWISE = ("G.resize(x, (1, 2, 3))", "G.resize(x, 5, I.LANCZOS)", "G.jpeg(x", "nan")
WRONG = [
    *(call.format("F") for call in BAD),
    *(call.format("G") for call in BAD),
    *BAD_SECOND,
    *(call.format("T") for call in BAD_CLASSES),
    *(call.format("V") for call in BAD_CLASSES),
    *BAD_SECOND_CLASSES,
]


def wrong_call(call, dtype):
    outcomes = [
        outcome(call, module, scope, x=tensor(module, dtype, "image"))
        for module, scope in ((torch, THEIRS), (rushlight, OURS))
    ]
    return bad_verdict(call, dtype, *outcomes)


def bad_verdict(call, dtype, theirs, ours):
    if theirs[0] == ours[0] == "value" and not hasattr(parts(ours[1])[0], "dtype"):
        return None  # a transform that takes the setting
    return verdict(call, dtype, theirs, ours, free=any(word in call for word in OTHERWISE))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_bad_arguments(dtype, monkeypatch):
    # what PyTorch's compiler turns off where something imported it
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    wrong = [f"{call}: {found}" for call in WRONG if (found := wrong_call(call, dtype))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_resized_bytes(channels, mode):
    """Bit for bit, at sizes of whole vectors and rests, along one side or both, wherever channels lie."""
    image = np.random.default_rng(0).integers(0, 256, (2, channels, 37, 211), dtype=np.uint8)
    for size in ((20, 143), (37, 90), (11, 211), (37, 211), (64, 300), (90, 40), (2, 1), (36, 208)):
        for antialias in (True, False):
            results = []
            for m in (torch, rushlight):
                for x in (
                    m.from_numpy(image),
                    m.from_numpy(image).contiguous(memory_format=m.channels_last),
                ):
                    how = {"mode": mode, "align_corners": False, "antialias": antialias}
                    results.append(m.nn.functional.interpolate(x, size=size, **how).numpy())
            # Of one column and more than four channels their two layouts differ: that of pixels is right.
            for found in results[2:]:
                assert (found == results[1]).all(), (size, antialias)
