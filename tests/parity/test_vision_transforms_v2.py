"""Transforms of samples against torchvision's: the same results from the same seed, for inputs of every kind."""

import warnings

import numpy as np
import pytest
from PIL import Image

import rushlight
from rushlight.vision import transforms as plain
from rushlight.vision import tv_tensors
from rushlight.vision.transforms import v2
from tests.parity import torchvision as oracle

torch = pytest.importorskip("torch")

torchvision = oracle.load()
from torchvision import tv_tensors as their_tensors  # noqa: E402
from torchvision.transforms import v2 as their_v2  # noqa: E402

BOTH = ((torch, their_tensors, their_v2), (rushlight, tv_tensors, v2))
HEIGHT, WIDTH = 26, 33
FORMATS = ("XYXY", "XYWH", "CXCYWH", "XYWHR", "CXCYWHR", "XYXYXYXY")


def pixels(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def boxes_of(format, module, kinds, dtype="float32", mode="soft"):
    """Boxes of one format, some of which leave the image."""
    random = np.random.default_rng(5)
    corner = random.uniform((-4, -4), (WIDTH - 6, HEIGHT - 6), (6, 2))
    boxes = np.concatenate([corner, random.uniform(3, 14, (6, 2))], 1)
    if format in ("XYWHR", "CXCYWHR", "XYXYXYXY"):
        angle = np.array([0.0, 10, 80, 100, -30, 200])
        boxes = np.concatenate([boxes, angle[:, None]], 1)
    tensor = torch.from_numpy(boxes.astype(dtype))
    if format in ("XYXY", "XYXYXYXY"):
        begin = "XYWH" if format == "XYXY" else "XYWHR"
        tensor = their_v2.functional.convert_bounding_box_format(tensor, begin, format)
    data = module.from_numpy(tensor.numpy().copy())
    return kinds.BoundingBoxes(data, format=format, canvas_size=(HEIGHT, WIDTH), clamping_mode=mode)


def made(kind, module, kinds):
    """An input, the same for both packages."""
    image = pixels(3, HEIGHT, WIDTH)
    if kind == "picture":
        return Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))
    if kind == "grey picture":
        return Image.fromarray(image[0])
    if kind == "tensor":
        return module.from_numpy(image)
    if kind == "image":
        return kinds.Image(module.from_numpy(image.astype(np.float32) / 255))
    if kind == "grey":
        return kinds.Image(module.from_numpy(image[:1]))
    if kind == "video":
        return kinds.Video(module.from_numpy(pixels(2, 3, HEIGHT, WIDTH)))
    if kind == "mask":
        return kinds.Mask(module.from_numpy(pixels(2, HEIGHT, WIDTH) // 90))
    if kind == "flat mask":
        return kinds.Mask(module.from_numpy((pixels(HEIGHT, WIDTH) // 90).astype(np.int64)))
    if kind == "points":
        data = np.random.default_rng(1).uniform(0, 26, (3, 4, 2)).astype(np.float32)
        return kinds.KeyPoints(module.from_numpy(data), canvas_size=(HEIGHT, WIDTH))
    if kind == "whole points":
        data = np.random.default_rng(1).integers(0, 26, (5, 2))
        return kinds.KeyPoints(module.from_numpy(data), canvas_size=(HEIGHT, WIDTH))
    if kind == "whole boxes":
        data = np.array([[2, 3, 9, 12], [5, 1, 20, 9], [20, 12, 30, 25]])
        return kinds.BoundingBoxes(
            module.from_numpy(data), format="XYXY", canvas_size=(HEIGHT, WIDTH)
        )
    if kind == "hard boxes":
        return boxes_of("CXCYWHR", module, kinds, mode="hard")
    return boxes_of(kind, module, kinds)


IMAGES = ("picture", "grey picture", "tensor", "image", "grey", "video")
PLACES = ("mask", "flat mask", "points", "whole points", "whole boxes", "hard boxes", *FORMATS)
KINDS = IMAGES + PLACES


def compare(expected, found, atol=1e-4, share=0.01):
    """`share` of pixels may differ by the rounding of sums; where it is more than 0.01, of pixels by more than 1, for
    places may lie between two of them.
    """
    if isinstance(expected, tuple | list):
        assert type(expected) is type(found) and len(expected) == len(found)
        for e, f in zip(expected, found, strict=True):
            compare(e, f, atol, share)
        return
    if isinstance(expected, dict):
        assert list(expected) == list(found)
        compare(list(expected.values()), list(found.values()), atol, share)
        return
    assert type(expected).__name__ == type(found).__name__
    if isinstance(expected, torch.Tensor):
        for field in ("canvas_size", "clamping_mode"):
            assert getattr(expected, field, None) == getattr(found, field, None)
        format = getattr(expected, "format", None)
        assert getattr(format, "value", None) == getattr(
            getattr(found, "format", None), "value", None
        )
        assert str(expected.dtype) == str(found.dtype).replace("rushlight", "torch")
        places = isinstance(expected, their_tensors.BoundingBoxes | their_tensors.KeyPoints)
        plain_tensors = (expected.as_subclass(torch.Tensor), found.as_subclass(rushlight.Tensor))
        e, f = (t.numpy().astype(np.float64) for t in plain_tensors)
        assert e.shape == f.shape
        if places:
            turned = e.shape[-1] > 4  # angles of small boxes
            off = 1 if not expected.is_floating_point() else 2e-3 if turned else atol
            np.testing.assert_allclose(f, e, rtol=1e-4, atol=off)
            if off == 1:
                assert (e != f).mean() < 0.2
        elif expected.is_floating_point():
            assert (np.abs(e - f) > (1e-3 if share > 0.01 else atol)).mean() <= share
        else:
            mask = isinstance(expected, their_tensors.Mask)
            assert (np.abs(e - f) > (share > 0.01 and not mask)).mean() <= share
            assert mask or share > 0.01 or np.abs(e - f).max(initial=0) <= 2
    elif isinstance(expected, Image.Image):
        assert expected.mode == found.mode and expected.size == found.size
        e, f = (np.asarray(picture).astype(int) for picture in (expected, found))
        assert (np.abs(e - f) > (share > 0.01)).mean() <= (share if share > 0.01 else 0)
    else:
        assert expected == found


def mode(name):
    return f"InterpolationMode.{name}"


CASES = {
    "RandomHorizontalFlip": [(1.0,), ()],
    "RandomVerticalFlip": [(1.0,)],
    "Resize": [(12,), ((15, 40),), (60, mode("BICUBIC"), 70), (None, "bilinear", 20), ((13, 20), "nearest"), ([9], mode("NEAREST_EXACT")), (12, "bilinear", None, False)],
    "CenterCrop": [(10,), ((31, 12),), ((40, 50),)],
    "RandomResizedCrop": [(14,), ((9, 17), (0.5, 1.0), (0.5, 2.0), "nearest")],
    "Pad": [(3,), ((2, 4), 7), ([1, 2, 3, 4], {"others": 0}), (1, [4.0])],
    "RandomZoomOut": [(0, (1.0, 4.0), 1.0), (9,)],
    "RandomRotation": [(40,), ((90, 90), "nearest", True), ((10, 80), "bilinear", True), (30, mode("BILINEAR"), False, (3, 4), 9)],
    "RandomAffine": [(30,), (30, (0.2, 0.3), (0.5, 1.5), 20, "bilinear"), (0, None, None, (1, 9, 2, 8), "nearest", 5, (2, 3))],
    "RandomCrop": [(11,), ((20, 40), 4, True), (40, None, True, 3), (12, [1, 2, 3, 4])],
    "RandomPerspective": [(0.5, 1.0), (0.3, 1.0, "nearest", 100)],
    "ElasticTransform": [(40.0, 3.0), ([30.0, 20.0], 4.0, "nearest", 3)],
    "ScaleJitter": [((40, 50),)],
    "RandomShortestSize": [([10, 20, 30],), (40, 45)],
    "RandomResize": [(10, 40)],
    "Identity": [()],
    "ToDtype": [("float32",), ("float32", True), ("uint8", True)],
    "ClampBoundingBoxes": [(), ("hard",), (None,)],
    "ClampKeyPoints": [()],
    "SetClampingMode": [("hard",)],
    "SanitizeKeyPoints": [()],
    "ToPureTensor": [()],
}  # fmt: skip
OF_IMAGES = {
    "FiveCrop": [(9,)],
    "TenCrop": [((8, 9), True)],
    "Grayscale": [(), (3,)],
    "RandomGrayscale": [(0.7,)],
    "RGB": [()],
    "ColorJitter": [(0.4, 0.3, 0.2, 0.1), ((0.5, 1.5), None, None, 0.5)],
    "RandomChannelPermutation": [()],
    "RandomPhotometricDistort": [(), ((0.5, 2.0), (0.5, 2.0), (0.5, 2.0), (-0.4, 0.4), 0.9)],
    "RandomEqualize": [(1.0,)],
    "RandomInvert": [(1.0,)],
    "RandomPosterize": [(3, 1.0)],
    "RandomSolarize": [(0.5, 1.0)],
    "RandomAutocontrast": [(1.0,)],
    "RandomAdjustSharpness": [(0.3, 1.0), (2.0, 1.0)],
    "GaussianBlur": [(5,), ((3, 7), (0.5, 3.0))],
    "GaussianNoise": [(), (0.2, 0.3, False)],
    "RandomErasing": [(1.0,), (1.0, (0.02, 0.33), (0.3, 3.3), "random"), (0.5, (0.1, 0.9), (0.1, 9.0), 0.3)],
    "Normalize": [((0.5,), (0.3,))],
    "AutoAugment": [(), ("AutoAugmentPolicy.CIFAR10",), ("AutoAugmentPolicy.SVHN", "bilinear", 7)],
    "RandAugment": [(), (4, 15)],
    "TrivialAugmentWide": [()],
    "AugMix": [(), (8, 2, 3, 0.5, False)],
    "ToPILImage": [()],
    "ToImage": [()],
    "PILToTensor": [()],
    "UniformTemporalSubsample": [(1,), (5,)],
    "ConvertImageDtype": [()],
}  # fmt: skip
ROUNDED = {
    "RandomRotation", "RandomAffine", "RandomPerspective", "ElasticTransform", "AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix",
}  # fmt: skip


def transform_of(package, module, name, arguments):
    given = []
    for a in arguments:
        if isinstance(a, str) and "." in a:
            a = eval("package." + a, {"package": package})
        elif isinstance(a, str) and a in ("float32", "uint8"):
            a = getattr(module, a)
        given.append(dict(a) if isinstance(a, dict) else a)
    if name == "SanitizeBoundingBoxes":
        return getattr(package, name)(*given, labels_getter=None)
    return getattr(package, name)(*given)


def outcome(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(), None
        except Exception as error:
            return None, type(error)


def check(name, arguments, sample_of, seeds=4):
    compared = 0
    for seed in range(seeds):
        results = []
        for module, kinds, package in BOTH:
            module.manual_seed(seed)
            sample = sample_of(module, kinds)
            results.append(
                outcome(lambda: transform_of(package, module, name, arguments)(sample))  # noqa: B023
            )
        (expected, raised), (found, ours) = results
        assert raised is ours, (arguments, raised, ours)
        if raised is None:
            compare(expected, found, share=0.05 if name in ROUNDED else 0.01)
            assert torch.rand(1).item() == rushlight.rand(1).item(), "another number of draws"
            compared += 1
    return compared


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_every_kind(name, kind):
    for arguments in CASES[name]:
        check(name, arguments, lambda module, kinds: made(kind, module, kinds))


@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("name", OF_IMAGES)
def test_images(name, kind):
    for arguments in OF_IMAGES[name]:
        check(name, arguments, lambda module, kinds: made(kind, module, kinds), seeds=6)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("other", FORMATS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_formats(format, other, dtype):
    results = [
        outcome(
            lambda: package.ConvertBoundingBoxFormat(other)(  # noqa: B023
                boxes_of(format, module, kinds, dtype)  # noqa: B023
            )
        )
        for module, kinds, package in BOTH
    ]
    assert results[0][1] is results[1][1]
    if results[0][1] is None:
        compare(results[0][0], results[1][0])


def sample(module, kinds, image="image", format="XYXY"):
    boxes = boxes_of(format, module, kinds)
    return {
        "image": made(image, module, kinds),
        "target": [
            {
                "boxes": boxes,
                "masks": kinds.Mask(module.from_numpy(pixels(6, HEIGHT, WIDTH) // 90)),
            },
            {"labels": module.arange(6), "points": made("points", module, kinds)},
            (module.arange(3), "text", None, 3.5),
        ],
    }


@pytest.mark.parametrize("image", ["picture", "tensor", "image"])
@pytest.mark.parametrize("name", CASES)
def test_structures(name, image):
    for arguments in CASES[name]:
        check(name, arguments, lambda module, kinds: sample(module, kinds, image))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name, arguments", [
    ("RandomIoUCrop", ()), ("RandomIoUCrop", (0.1, 0.9, 0.3, 3.0, [0.2, 0.5])), ("SanitizeBoundingBoxes", ()), ("SanitizeBoundingBoxes", (5.0, 40.0)),
])  # fmt: skip
def test_boxes(name, arguments, format):
    compared = check(
        name, arguments, lambda module, kinds: sample(module, kinds, "image", format), seeds=10
    )
    assert compared or (name == "RandomIoUCrop" and format not in ("XYXY", "XYWH", "CXCYWH"))


def test_labels_of_boxes():
    for getter in ("default", lambda s: s["labels"], lambda s: (s["labels"], s["area"])):
        results = []
        for module, kinds, package in BOTH:
            labels = module.arange(6)
            given = {"boxes": boxes_of("XYWH", module, kinds), "labels": labels, "area": labels * 2}
            given["masks"] = kinds.Mask(module.from_numpy(pixels(6, 4, 4)))
            results.append(package.SanitizeBoundingBoxes(6.0, labels_getter=getter)(given))
        compare(*results)


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
def test_mixed_batches(name):
    for seed in range(6):
        for settings in ({"num_classes": 5}, {"alpha": 0.3, "num_classes": 5}):
            results = []
            for module, kinds, package in BOTH:
                module.manual_seed(seed)
                batch = module.from_numpy(pixels(4, 3, 10, 12).astype(np.float32))
                labels = module.tensor([0, 3, 2, 4])
                transform = getattr(package, name)(**settings)
                results.append([
                    transform(batch, labels),
                    transform({"image": kinds.Image(batch), "Labels": module.eye(5)[:4]}),
                    transform(kinds.Video(batch[:, None]), labels),
                ])  # fmt: skip
            compare(*results)


def test_containers():
    for seed in range(6):
        for name, settings in (("Compose", ()), ("RandomApply", (0.5,)), ("RandomChoice", ([0.2, 0.8],)), ("RandomOrder", ())):  # fmt: skip
            results = []
            for module, kinds, package in BOTH:
                module.manual_seed(seed)
                inner = [package.RandomCrop(8), package.RandomResizedCrop(9)]
                transform = getattr(package, name)(inner, *settings)
                given = made("image", module, kinds), boxes_of("XYXY", module, kinds)
                results.append([transform(*given), transform(given[0])])
            compare(*results)


CALLS = {
    "normalize": lambda f, m, k, x: f.normalize(x, [0.1], [0.0]),
    "longest": lambda f, m, k, x: f.resize(x, [4, 4], max_size=9),
    "mode": lambda f, m, k, x: f.resize(x, 4, "cubic"),
    "mode of grids": lambda f, m, k, x: f.rotate(x, 3.0, "bicubic"),
    "padding": lambda f, m, k, x: f.pad(x, [1, 2, 3]),
    "padding mode": lambda f, m, k, x: f.pad(x, 1, padding_mode="mirror"),
    "padding of boxes": lambda f, m, k, x: f.pad(made("XYXY", m, k), 1, padding_mode="edge"),
    "fill": lambda f, m, k, x: f.affine(x, 1.0, [0, 0], 1.0, [0.0], fill=[1, 2]),
    "scale": lambda f, m, k, x: f.affine(x, 1.0, [0, 0], 0.0, [0.0]),
    "coefficients": lambda f, m, k, x: f.perspective(x, None, None),
    "singular": lambda f, m, k, x: f.perspective(made("points", m, k), None, None, coefficients=[0.0] * 8),
    "displacement": lambda f, m, k, x: f.elastic(x, m.zeros(1, 2, 2, 2)),
    "crop": lambda f, m, k, x: f.five_crop(x, 100),
    "bits": lambda f, m, k, x: f.posterize(x, 9),
    "threshold": lambda f, m, k, x: f.solarize(x, 300),
    "hue": lambda f, m, k, x: f.adjust_hue(x, 0.7),
    "brightness": lambda f, m, k, x: f.adjust_brightness(x, -1),
    "channels": lambda f, m, k, x: f.adjust_contrast(m.zeros(2, 4, 4), 1.0),
    "permutation": lambda f, m, k, x: f.permute_channels(x, [0]),
    "noise": lambda f, m, k, x: f.gaussian_noise(made("picture", m, k)),
    "noise of integers": lambda f, m, k, x: f.gaussian_noise(m.zeros(3, 4, 4, dtype=m.int32)),
    "kind": lambda f, m, k, x: f.resize([1], 3),
    "kind without kernel": lambda f, m, k, x: f.normalize(made("points", m, k), [0.1], [0.1]),
    "format": lambda f, m, k, x: f.convert_bounding_box_format(m.zeros(1, 4), new_format="XYWH"),
    "turned": lambda f, m, k, x: f.convert_bounding_box_format(made("XYXY", m, k), new_format="XYWHR"),
    "clamping": lambda f, m, k, x: f.clamp_bounding_boxes(m.zeros(1, 4)),
    "dtype": lambda f, m, k, x: f.to_dtype(m.zeros(3, 4, 4), m.int64, scale=True),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_errors(name):
    raised = []
    for module, kinds, package in BOTH:
        with pytest.raises(Exception) as error:
            CALLS[name](package.functional, module, kinds, made("tensor", module, kinds))
        raised.append(error.type)
    assert raised[0] is raised[1]


SETTINGS = [
    ("Resize", (None,)), ("Resize", ([1, 2, 3],)), ("CenterCrop", ([1, 2, 3],)), ("RandomResizedCrop", (3, 1.0)), ("Pad", ([1, 2, 3],)),
    ("Pad", (1.5,)), ("Pad", (1, "red")), ("RandomZoomOut", (0, (0.5, 1.0))), ("RandomCrop", (3, [1, 2, 3])), ("RandomPerspective", (2.0,)),
    ("RandomHorizontalFlip", (1.5,)), ("GaussianBlur", (4,)), ("GaussianBlur", (3, -1.0)), ("ColorJitter", (-1,)), ("ColorJitter", (0, 0, 0, 0.7)),
    ("RandomErasing", (0.5, 1.0)), ("RandomErasing", (0.5, (0.1, 0.2), (0.1, 0.2), "blue")), ("JPEG", (0,)), ("JPEG", (True,)), ("JPEG", ([50, 20],)),
    ("SanitizeBoundingBoxes", (0,)), ("ToDtype", (3,)), ("SetClampingMode", ("loose",)), ("Compose", ([],)), ("Compose", (3,)),
    ("RandomApply", ([], 0.5)), ("RandomChoice", ([1], [0.5, 0.5])), ("RandAugment", (-1,)), ("AugMix", (11,)), ("RandomRotation", (-1,)),
    ("ElasticTransform", ("a",)), ("RandomAffine", (1, (2, 2))), ("MixUp", ()), ("RandomAffine", (1, None, None, None, "nearest", "red")),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments", SETTINGS)
def test_settings(name, arguments):
    results = [outcome(lambda: getattr(package, name)(*arguments))[1] for _, _, package in BOTH]  # noqa: B023
    assert results[0] is results[1]


def test_names_and_printed_forms():
    for theirs, ours in (
        (their_v2, v2),
        (their_v2.functional, v2.functional),
        (their_tensors, tv_tensors),
    ):
        public = {n for n in dir(theirs) if not n.startswith("_") and n != "torch"}
        assert public <= set(dir(ours))
    for name, cases in {**CASES, **OF_IMAGES}.items():
        for arguments in cases:
            shown = [repr(transform_of(p, m, name, arguments)) for m, _, p in BOTH]
            assert shown[0] == shown[1].replace("rushlight.", "torch.")


def test_plain_and_new_transforms_agree():
    """Both have one implementation: on plain tensors and pictures they give the same."""
    for kind in ("picture", "tensor"):
        given = made(kind, rushlight, tv_tensors)
        for name, arguments in (("RandomRotation", (40,)), ("ColorJitter", (0.3, 0.3, 0.3, 0.3)), ("RandomPerspective", (0.5, 1.0)), ("GaussianBlur", (5,))):  # fmt: skip
            results = []
            for package in (plain, v2):
                rushlight.manual_seed(3)
                results.append(np.asarray(getattr(package, name)(*arguments)(given)))
            np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest", "nearest-exact"])
@pytest.mark.parametrize("antialias", [True, False])
def test_bytes_are_resized_to_the_same_pixels(mode, antialias):
    random = np.random.default_rng(0)
    for i in range(60):
        channels, (height, width, *size) = 1 + i % 5, random.integers(1, 90, 4).tolist()
        image = pixels(channels, height, width, seed=i)
        expected, found = (
            package.functional.resize(module.from_numpy(image), size, mode, antialias=antialias)
            for module, _, package in BOTH
        )
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


ODD = {
    "resize": lambda f, x: f.resize(x, [3, 4]),
    "resize to nothing": lambda f, x: f.resize(x, [0, 4]),
    "resize to less": lambda f, x: f.resize(x, [-3, 4]),
    "resize to terabytes": lambda f, x: f.resize(x, [2**40, 2**20]),
    "pad to terabytes": lambda f, x: f.pad(x, 2**40),
    "pad mirrored": lambda f, x: f.pad(x, 3, padding_mode="reflect"),
    "cut": lambda f, x: f.pad(x, -1),
    "crop": lambda f, x: f.crop(x, -3, -2, 4, 4),
    "rotate": lambda f, x: f.rotate(x, 30.0, fill=1),
    "blur": lambda f, x: f.gaussian_blur(x, 3),
    "hue": lambda f, x: f.adjust_hue(x, 0.2),
    "sharpness": lambda f, x: f.adjust_sharpness(x, 1.2),
    "autocontrast": lambda f, x: f.autocontrast(x),
    "equalize": lambda f, x: f.equalize(x),
    "grey": lambda f, x: f.rgb_to_grayscale(x),
    "gamma": lambda f, x: f.adjust_gamma(x, 1.2),
    "normalize": lambda f, x: f.normalize(x, [0.1], [0.2]),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "shape", [(3, 0, 5), (0, 3, 4, 5), (3, 1, 1), (5, 6, 7), (1, 1, 1, 3, 4, 5)]
)
def test_odd_images(name, shape):
    """Empty ones, with too many channels, of one pixel; sizes that no memory holds."""
    results = [
        outcome(lambda: ODD[name](package.functional, module.ones(*shape)))  # noqa: B023
        for module, _, package in BOTH
    ]
    (expected, raised), (found, ours) = results
    assert raised is ours
    if raised is None:
        assert tuple(expected.shape) == tuple(found.shape)
        if expected.numel() in range(1, 10**6):
            compare(expected, found)
