"""Transforms against torchvision's: the same numbers from the same seed, for pictures and tensors."""

import random

import numpy as np
import pytest
from PIL import Image

import rushlight
from rushlight.vision import transforms, utils
from tests.parity import torchvision as oracle

torch = pytest.importorskip("torch")

torchvision = oracle.load()


def pixels(height, width, channels=3, seed=0):
    shape = (height, width, channels)[: 2 if channels == 1 else 3]
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def images(kind):
    """The same image for both, as a picture, as bytes or as floating-point numbers."""
    if kind == "grey picture":
        picture = Image.fromarray(pixels(20, 27, 1))
        return picture, picture
    if kind == "picture":
        picture = Image.fromarray(pixels(23, 30))
        return picture, picture
    array = np.ascontiguousarray(pixels(23, 30).transpose(2, 0, 1))
    if kind == "batch":
        array = np.stack([array, array[:, ::-1]]).astype(np.float32) / 255
    elif kind == "floats":
        array = array.astype(np.float32) / 255
    return torch.from_numpy(array.copy()), rushlight.from_numpy(array.copy())


def array_of(x):
    return np.asarray(x) if isinstance(x, Image.Image) else x.numpy()


def compare(expected, found, atol, rounded=False, by_tensors=False):
    """`rounded`: places or magnitudes are computed in float32, and some lie on the edge between two pixels.
    `by_tensors`: pictures are tensors on the way.
    """
    if isinstance(expected, tuple | list):
        assert len(expected) == len(found)
        for e, f in zip(expected, found, strict=True):
            compare(e, f, atol, rounded, by_tensors)
        return
    if isinstance(expected, Image.Image):
        assert expected.mode == found.mode
    e, f = array_of(expected), array_of(found)
    assert e.shape == f.shape and e.dtype == f.dtype
    if rounded:
        differ = np.abs(e.astype(float) - f.astype(float))
        assert (differ > (1 if e.dtype == np.uint8 else 1e-3)).mean() < 0.05
    elif e.dtype == np.uint8:  # sums of float32 may round the other way
        differ = np.abs(e.astype(int) - f.astype(int))
        exact = isinstance(expected, Image.Image) and not by_tensors
        assert differ.max(initial=0) <= (0 if exact else 1)
        assert (differ != 0).mean() < 0.01
    else:
        np.testing.assert_allclose(f, e, rtol=1e-4, atol=atol)


MODE = "InterpolationMode"
CASES = {
    "Resize": [(12,), ((15, 40),), (12, f"{MODE}.NEAREST"), (12, f"{MODE}.BICUBIC"), (60, f"{MODE}.BILINEAR", 70)],
    "CenterCrop": [(10,), ((31, 12),), ((40, 50),)],
    "Pad": [(3,), ((2, 4), 7), ((1, 2, 3, 4), 0, "edge"), ((1, 2, 3, 4), 0, "reflect"), (4, 0, "symmetric")],
    "FiveCrop": [(9,)],
    "TenCrop": [((8, 9), True)],
    "Grayscale": [(), (3,)],
    "RandomCrop": [(11,), ((26, 26), 4, True), (40, None, True)],
    "RandomHorizontalFlip": [()],
    "RandomVerticalFlip": [()],
    "RandomResizedCrop": [(14,), ((9, 17), (0.5, 1.0), (0.5, 2.0))],
    "RandomPerspective": [(0.5, 1.0), (0.3, 1.0, f"{MODE}.NEAREST", 100)],
    "RandomRotation": [(40,), ((10, 80), f"{MODE}.BILINEAR", True), (30, f"{MODE}.BILINEAR", False, (3, 4), 9)],
    "RandomAffine": [(30,), (30, (0.2, 0.3), (0.5, 1.5), 20, f"{MODE}.BILINEAR"), (0, None, None, (1, 9, 2, 8), f"{MODE}.NEAREST", 5, (2, 3))],
    "ColorJitter": [(0.4, 0.3, 0.2, 0.1), ((0.5, 1.5), 0, 0, 0.5)],
    "RandomGrayscale": [(0.5,)],
    "GaussianBlur": [(5,), ((3, 7), (0.5, 3.0))],
    "RandomInvert": [()],
    "RandomPosterize": [(3, 1.0)],
    "RandomSolarize": [(0.5, 1.0), (128, 1.0)],
    "RandomAdjustSharpness": [(0.3, 1.0), (2.0, 1.0)],
    "RandomAutocontrast": [(1.0,)],
    "RandomEqualize": [(1.0,)],
    "RandomErasing": [(1.0,), (1.0, (0.02, 0.33), (0.3, 3.3), "random"), (0.5, (0.1, 0.9), (0.1, 9.0), [0.1, 0.2, 0.3])],
    "ElasticTransform": [(40.0, 3.0), ((30.0, 20.0), 4.0, f"{MODE}.NEAREST", 3)],
    "AutoAugment": [(), ("AutoAugmentPolicy.CIFAR10",), ("AutoAugmentPolicy.SVHN", f"{MODE}.BILINEAR", 7)],
    "RandAugment": [(), (4, 20)],
    "TrivialAugmentWide": [()],
    "AugMix": [(), (8, 2, 3, 0.5, False)],
}  # fmt: skip
POLICIES = {"AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix"}
BYTES_ONLY = {"RandomPosterize", "RandomEqualize", *POLICIES}


def made(package, name, arguments):
    named = [
        (eval("package." + a, {"package": package}) if isinstance(a, str) and "." in a else a)
        for a in arguments
    ]
    return getattr(package, name)(*named)


@pytest.mark.parametrize("kind", ["picture", "grey picture", "bytes", "floats", "batch"])
@pytest.mark.parametrize("name", CASES)
def test_transforms(name, kind):
    compared = 0
    if name == "RandomErasing" and "picture" in kind:
        pytest.skip("torchvision erases parts of tensors alone, pictures are refused")
    for arguments in CASES[name]:
        if kind in ("floats", "batch") and (name in BYTES_ONLY or 128 in arguments):
            continue
        for seed in range(6):
            theirs, ours = images(kind)
            torch.manual_seed(seed)
            rushlight.manual_seed(seed)
            random.seed(seed)
            expected = made(torchvision.transforms, name, arguments)(theirs)
            random.seed(seed)
            found = made(transforms, name, arguments)(ours)
            nearest = f"{MODE}.NEAREST" in arguments or name in ("RandomRotation", "RandomAffine")
            compare(expected, found, 2e-5, nearest or name in POLICIES, name == "ElasticTransform")
            compared += 1
            assert torch.rand(1).item() == rushlight.rand(1).item(), "another number of draws"
    if not compared:
        pytest.skip("every case of it is for bytes: torchvision refuses floats")


def test_printed_forms():
    for name, arguments in CASES.items():
        for a in arguments:
            expected = repr(made(torchvision.transforms, name, a)).replace(",p=", ", p=")
            found = repr(made(transforms, name, a))
            for mode in transforms.InterpolationMode:  # some of torchvision's say it at length
                expected = expected.replace(str(mode), mode.value)
                found = found.replace(str(mode), mode.value)
            assert found == expected


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64"])
def test_conversions_of_dtypes(dtype):
    values = np.array([[[0, 1, 100, 127]]]).astype(dtype)
    values = values / 127 if dtype.startswith("float") else values
    for to in ("uint8", "int16", "int32", "int64", "float32", "float64"):
        results = []
        for module, package in ((torch, torchvision.transforms), (rushlight, transforms)):
            tensor = module.from_numpy(values.astype(dtype))
            try:
                results.append(
                    package.functional.convert_image_dtype(tensor, getattr(module, to)).numpy()
                )
            except RuntimeError as e:
                results.append(str(e).replace("rushlight.", "torch.")[:30])  # the key phrase
        if isinstance(results[0], str):
            assert results[0] == results[1]
        else:
            np.testing.assert_array_equal(results[0], results[1])


def test_pictures_and_tensors():
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "HSV", "YCbCr", "I", "F", "I;16"):
        picture = Image.fromarray(pixels(5, 6)).convert("L").convert(mode)
        for function in ("to_tensor", "pil_to_tensor", "get_dimensions", "get_image_size"):
            expected, found = (
                getattr(p.functional, function)(picture)
                for p in (torchvision.transforms, transforms)
            )
            if isinstance(expected, list):
                assert expected == found
            else:
                compare(expected, found, 0)
        if mode not in ("1", "P", "I;16"):
            back = transforms.functional.to_pil_image(
                transforms.functional.pil_to_tensor(picture), mode
            )
            np.testing.assert_array_equal(np.asarray(back), np.asarray(picture))


@pytest.mark.parametrize("call", [
    lambda f, t: f.to_tensor([1]),
    lambda f, t: f.to_tensor(np.zeros((1, 2, 3, 4))),
    lambda f, t: f.to_pil_image(t.zeros(5, 4, 4)),
    lambda f, t: f.to_pil_image(t.zeros(1, 1, 1, 1)),
    lambda f, t: f.resize(t.zeros(3, 4, 4), [1, 2, 3]),
    lambda f, t: f.resize(t.zeros(3, 4, 4), [4], max_size=3),
    lambda f, t: f.resize([[1]], 3),
    lambda f, t: f.pad(t.zeros(3, 4, 4), [1, 2, 3]),
    lambda f, t: f.pad(t.zeros(3, 4, 4), 1, padding_mode="mirror"),
    lambda f, t: f.affine(t.zeros(3, 4, 4), 1, (1, 2), 0.0, 0),
    lambda f, t: f.affine(t.zeros(3, 4, 4), "1", (1, 2), 1.0, 0),
    lambda f, t: f.rotate(t.zeros(3, 4, 4), "a"),
    lambda f, t: f.adjust_hue(t.zeros(3, 4, 4), 0.7),
    lambda f, t: f.adjust_brightness(t.zeros(3, 4, 4), -1),
    lambda f, t: f.adjust_gamma(t.zeros(3, 4, 4), -1),
    lambda f, t: f.gaussian_blur(t.zeros(3, 4, 4), 4),
    lambda f, t: f.gaussian_blur(t.zeros(3, 4, 4), 3, -1.0),
    lambda f, t: f.five_crop(t.zeros(3, 4, 4), 5),
    lambda f, t: f.normalize(t.zeros(3, 4, 4), [0.0], [0.0]),
    lambda f, t: f.normalize(t.zeros(3, 4, 4).int(), [0.0], [1.0]),
    lambda f, t: f.equalize(t.zeros(3, 4, 4)),
    lambda f, t: f.erase([1], 0, 0, 1, 1, t.zeros(1)),
    lambda f, t: f.hflip(t.zeros(3)),
])  # fmt: skip
def test_errors(call):
    raised = []
    for package, module in ((torchvision.transforms, torch), (transforms, rushlight)):
        with pytest.raises(Exception) as error:
            call(package.functional, module)
        raised.append(error.type)
    assert raised[0] is raised[1]


def test_pictures_of_tensors():
    image = pixels(40, 50).transpose(2, 0, 1).copy()
    boxes = np.array([[2, 3, 20, 30], [10, 12, 45, 38]])
    masks = np.zeros((2, 40, 50), bool)
    masks[0, 5:20, 5:20] = masks[1, 15:30, 15:30] = True
    points = np.array([[[5, 6], [20, 30], [40, 10]]])
    flow = np.random.default_rng(1).normal(size=(2, 2, 9, 11)).astype(np.float32)
    results = []
    for module, package in ((torch, torchvision.utils), (rushlight, utils)):
        t = module.from_numpy
        results.append([
            package.make_grid(t(image)[None].float().expand(5, -1, -1, -1), nrow=3, normalize=True, pad_value=0.5),
            package.draw_bounding_boxes(t(image), t(boxes), colors=["red", (1, 2, 3)], width=2, fill=True),
            package.draw_bounding_boxes(t(image), t(boxes), labels=["a", "b"]),
            package.draw_segmentation_masks(t(image), t(masks), 0.6, ["blue", "#00FF00"]),
            package.draw_keypoints(t(image), t(points), [(0, 1), (1, 2)], "blue"),
            package.flow_to_image(t(flow)),
        ])  # fmt: skip
    for expected, found in zip(*results, strict=True):
        compare(expected, found, 1e-6)
