"""Compose moves the pixels of pictures as late as it can: what comes out is what its steps give."""

import random

import numpy as np
import pytest
from PIL import Image

import rushlight as torch
from rushlight.vision import transforms as t

SIZES = {"L": (), "RGB": (3,), "RGBA": (4,)}


def picture(mode, size, seed=0):
    width, height = size
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, *SIZES[mode]), np.uint8)
    img = Image.fromarray(pixels)
    img.info["of"] = "a test"
    return img


def steps_of(rng):
    """Some steps on pictures, and how they end."""
    steps = [
        lambda: t.Resize(rng.choice([17, 40, (23, 31)])),
        lambda: t.Resize(rng.choice([17, 40]), t.InterpolationMode.NEAREST),
        lambda: t.Resize((30, 40), t.InterpolationMode.BICUBIC),
        lambda: t.CenterCrop(rng.choice([12, 60, (20, 16)])),
        lambda: t.RandomCrop(rng.choice([9, 12]), padding=rng.choice([None, 3])),
        lambda: t.RandomResizedCrop(rng.choice([16, 24])),
        lambda: t.RandomHorizontalFlip(rng.choice([0.5, 1.0])),
        lambda: t.ColorJitter(0.2, 0.3),
        lambda: t.RandomVerticalFlip(0.5),
        lambda: t.Lambda(lambda img: img.rotate(90)),
    ]
    chosen = [rng.choice(steps)() for _ in range(rng.randint(1, 4))]
    ends = [
        [],
        [t.ToTensor()],
        [t.ToTensor(), t.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.1))],
        [t.ToTensor(), t.Normalize((0.4,), (0.2,), inplace=True)],
        [t.PILToTensor()],
    ]
    return chosen + rng.choice(ends)


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        return a.stride() == b.stride() and torch.equal(a, b)
    return (a.mode, a.size, a.info) == (b.mode, b.size, b.info) and a.tobytes() == b.tobytes()


def outcome(f):
    torch.manual_seed(3)
    random.seed(3)
    try:
        return f()
    except Exception as error:
        return type(error)


def applied(steps, img):
    for step in steps:
        img = step(img)
    return img


@pytest.mark.parametrize("mode", SIZES)
def test_compose_gives_what_its_steps_give(mode):
    made = 0
    for seed in range(120):
        steps = steps_of(random.Random(seed))
        img = picture(mode, (37, 29), seed)
        before = img.tobytes()
        one, other = outcome(lambda: t.Compose(steps)(img)), outcome(lambda: applied(steps, img))  # noqa: B023
        if isinstance(other, type):
            assert one is other
            continue
        made += 1
        assert same(one, other), (seed, steps)
        assert img.tobytes() == before
    assert made > 60


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_compose_makes_tensors_of_the_default_dtype(dtype):
    steps = [t.CenterCrop(20), t.ToTensor(), t.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.1))]
    img = picture("RGB", (37, 29))
    torch.set_default_dtype(dtype)
    try:
        one, other = t.Compose(steps)(img), applied(steps, img)
    finally:
        torch.set_default_dtype(torch.float32)
    assert one.dtype == dtype and same(one, other)


def test_pictures_in_several_blocks_of_pillow():
    img = picture("RGB", (3000, 2000))
    steps = [t.CenterCrop(1900), t.RandomHorizontalFlip(1.0), t.RandomCrop(40)]
    assert same(outcome(lambda: t.Compose(steps)(img)), outcome(lambda: applied(steps, img)))


def test_own_transforms_and_hooks_get_pictures():
    seen = []

    class Crop(t.CenterCrop):
        def forward(self, img):
            seen.append(type(img))
            return super().forward(img)

    hooked = t.RandomHorizontalFlip(1.0)
    hooked.register_forward_pre_hook(lambda module, args: seen.append(type(args[0])))
    patched = t.CenterCrop(9)
    patched.forward = lambda img: seen.append(type(img)) or img
    steps = [t.CenterCrop(20), Crop(18), t.CenterCrop(16), hooked, t.CenterCrop(12), patched]
    out = t.Compose([*steps, seen.append])(picture("RGB", (37, 29)))
    assert out is None
    assert seen[:3] == [Image.Image] * 3 and isinstance(seen[3], Image.Image)


def test_normalize_that_broadens_or_learns_sees_the_tensor():
    img = picture("L", (20, 10))
    steps = [t.ToTensor(), t.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.1))]
    assert same(t.Compose(steps)(img), applied(steps, img))
    mean = torch.tensor([0.4], requires_grad=True)
    assert t.Compose([t.ToTensor(), t.Normalize(mean, [0.2])])(img).requires_grad


def test_loader_gives_a_picture_of_its_own(tmp_path):
    from rushlight.vision.datasets.folder import pil_loader

    for mode in SIZES:
        path = tmp_path / f"{mode}.png"
        picture(mode, (37, 29)).save(path)
        loaded = pil_loader(path)
        assert type(loaded) is Image.Image and loaded.mode == "RGB"
        assert loaded.tobytes() == Image.open(path).convert("RGB").tobytes()
        loaded.putpixel((0, 0), (1, 2, 3))
