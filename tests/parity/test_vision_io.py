"""Pixels of decoded files beside those of torchvision's decoders."""

import io

import numpy as np
import pytest
from PIL import Image

import rushlight
from rushlight.vision import io as ours
from tests.parity import torchvision as oracle

torch = pytest.importorskip("torch")
oracle.load()
if not oracle.compiled("_C.so", "image.so"):
    pytest.skip("torchvision's compiled part does not load", allow_module_level=True)

from torchvision import io as theirs  # noqa: E402

MODES = ("UNCHANGED", "GRAY", "GRAY_ALPHA", "RGB", "RGB_ALPHA")
NOISE = np.random.default_rng(0).integers(0, 256, (17, 33, 4), np.uint8)
RGBA = Image.fromarray(NOISE, "RGBA")
RGB = RGBA.convert("RGB")
FEW = RGB.quantize(16)


def saved(image, format, **how):
    out = io.BytesIO()
    image.save(out, format, **how)
    return out.getvalue()


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


FILES = {
    **{f"png {mode}": saved(RGB.convert(mode), "PNG") for mode in ("1", "L", "P", "RGB")},
    **{f"png {mode}": saved(RGBA.convert(mode), "PNG") for mode in ("LA", "RGBA")},
    **{f"png {n} colours": saved(RGB.quantize(n), "PNG", bits=b) for n, b in ((2, 1), (16, 4))},
    "png transparent grey": saved(RGB.convert("L"), "PNG", transparency=3),
    "png transparent colour": saved(RGB, "PNG", transparency=tuple(NOISE[0, 0, :3].tolist())),
    "png 16 bits": saved(Image.fromarray(NOISE[..., 0].astype(np.uint16) * 257), "PNG"),
    **{f"jpeg {mode}": saved(RGB.convert(mode), "JPEG") for mode in ("L", "RGB", "CMYK")},
    "jpeg progressive": saved(RGB, "JPEG", progressive=True, subsampling=0),
    **{f"webp {mode}": saved(RGBA.convert(mode), "WEBP") for mode in ("RGB", "RGBA")},
    "webp lossless": saved(RGB, "WEBP", lossless=True),
    "gif": saved(FEW, "GIF"),
    "gif frames": saved(FEW, "GIF", save_all=True, append_images=[FEW.rotate(90), FEW.rotate(180)]),
}
# What torchvision makes of alpha that a file has not (1 of 255, numbers of a palette as colours) or that is
# one of its colours (none), of numbers of a palette below 8 bits (several in a byte), and of WebP as grey,
# which it leaves in colours.
OTHERWISE = {
    *(("png transparent colour", mode) for mode in MODES[2::2]),
    *(
        (f"png {kind}", mode)
        for kind in ("1", "P", "2 colours", "16 colours")
        for mode in MODES[2::2]
    ),
    *((f"png {n} colours", "UNCHANGED") for n in (2, 16)),
    *((f"webp {kind}", mode) for kind in ("RGB", "RGBA", "lossless") for mode in MODES[1:3]),
}


def decoded(module, package, data, *how):
    try:
        return package.decode_image(module.frombuffer(bytearray(data), dtype=module.uint8), *how)
    except RuntimeError as error:
        return error


def same(one, other):
    if isinstance(one, Exception) or isinstance(other, Exception):
        return type(one) is type(other)
    a, b = one.numpy(), other.numpy()
    return a.dtype == b.dtype and a.shape == b.shape and np.abs(a.astype(int) - b).max() <= 1


@pytest.mark.parametrize("name", FILES)
def test_pixels(name):
    for mode in MODES:
        if (name, mode) not in OTHERWISE:
            both = [
                decoded(module, package, FILES[name], mode)
                for module, package in ((torch, theirs), (rushlight, ours))
            ]
            assert same(*both), (mode, *both)


@pytest.mark.parametrize("format", ["PNG", "JPEG"])
def test_orientation(format):
    for orientation in range(10):
        data = saved(RGB, format, exif=turned(orientation))
        for follow in (False, True):
            both = [
                decoded(module, package, data, "RGB", follow)
                for module, package in ((torch, theirs), (rushlight, ours))
            ]
            assert same(*both), (orientation, follow, *both)


@pytest.mark.parametrize("name", ["png RGB", "png P", "jpeg RGB", "gif", "webp RGB"])
def test_files_cut_off(name):
    """Where torchvision says that a file is damaged, so do we; a GIF may lack the last two bytes."""
    data = FILES[name]
    for n in range(1, len(data) - (2 if name == "gif" else 0), 5):
        both = [
            decoded(module, package, data[:n])
            for module, package in ((torch, theirs), (rushlight, ours))
        ]
        one, other = (isinstance(b, Exception) for b in both)
        assert one == other, (n, both)


@pytest.mark.parametrize("name", ["png RGB", "jpeg RGB", "webp RGB"])
def test_files_with_a_wrong_byte(name):
    for n in range(0, len(FILES[name]), 7):
        data = bytearray(FILES[name])
        data[n] ^= 1 << n % 8
        both = [
            decoded(module, package, data)
            for module, package in ((torch, theirs), (rushlight, ours))
        ]
        assert not isinstance(both[0], Exception) or isinstance(both[1], Exception), (n, both)
