"""What transforms do to pictures of Pillow: its own operations, or the same pixels sooner.

Each function has the name and the meaning of the one in functional.py, which has checked the
arguments.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL
from PIL import Image, ImageEnhance, ImageOps

from rushlight import _C, Tensor

from ._modes import InterpolationMode, pillow_code

# Pillow gives back the memory of each picture, and the pages of the next are mapped and cleared
# anew, which takes as long as half of decoding it. Of blocks (of at most 16 MB) it keeps a few now,
# unless the program has said how many itself.
_KEPT_BLOCKS = 4
if Image.core.get_blocks_max() == 0 and "PILLOW_BLOCKS_MAX" not in os.environ:
    Image.core.set_blocks_max(_KEPT_BLOCKS)


def get_dimensions(img: Any) -> list[int]:
    return [len(img.getbands()), img.height, img.width]


def _fill(fill: Any, img: Any) -> Any:
    """What Pillow takes for pixels from outside: a number, or a tuple of one for each channel."""
    channels = len(img.getbands())
    fill = 0 if fill is None else fill
    if isinstance(fill, list | tuple):
        if len(fill) not in (1, channels):
            raise ValueError(
                f"number of elements in 'fill' is {len(fill)}, for {channels} channels"
            )
        fill = tuple(fill) * (channels if len(fill) == 1 else 1)
        if len(fill) == 1:
            fill = fill[0]
    elif channels > 1:
        fill = (fill,) * channels
    if img.mode == "F":
        return fill
    return tuple(int(v) for v in fill) if isinstance(fill, tuple) else int(fill)


# From this version on Pillow adds up rows before columns where the height shrinks much more than
# the width; bytes in between are rounded, so the order shows.
_ROWS_FIRST = int(PIL.__version__.split(".")[0]) >= 13


def _rows_first(less_height: int, less_width: int) -> bool:
    return _ROWS_FIRST and less_height > 0 and less_height > 2 * less_width


_OWN_MODES = (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC)


def pixels_of(img: Any) -> Tensor | None:
    """The bytes of a grey or coloured picture in its own memory, (H, W, 1) or (H, W, 4), the last
    channel unused; None for other pictures, for large ones in several blocks, and before Pillow
    11.2.1, which cannot tell where they lie.
    """
    if img.mode not in ("L", "RGB") or not hasattr(img, "__arrow_c_array__"):
        return None
    try:
        return _C._pixels(*img.__arrow_c_array__(), img.height, img.width)
    except ValueError:
        return None


def new(mode: str, size: tuple[int, int]) -> tuple[Any, Tensor | None]:
    """A picture that nothing was written into yet, and its bytes (pixels_of)."""
    out = Image.new(mode, size, None)
    return out, pixels_of(out)


def picture_of(mode: str, pixels: Tensor, info: dict) -> Any:
    """A picture of such bytes, in as many blocks as Pillow likes."""
    height, width, lanes = pixels.shape
    raw = "L" if lanes == 1 else "RGBX"
    out = Image.frombytes(mode, (width, height), pixels.numpy().tobytes(), "raw", raw)
    out.info = info.copy()
    return out


def resize_bytes(mode: str, pixels: Tensor, size: Sequence[int], interpolation: Any) -> Any:
    """A picture of some bytes at another size; None where Pillow has to make it."""
    height, width, _ = pixels.shape
    if interpolation not in _OWN_MODES or min(size) <= 0 or size == [height, width]:
        return None
    out, to = new(mode, (size[1], size[0]))
    if to is None:
        return None
    if _rows_first(height - size[0], width - size[1]):
        pixels = _C.ops._resize_pixels(pixels, [size[0], width], interpolation.value)
    _C.ops._resize_pixels(pixels, list(size), interpolation.value, out=to)
    return out


def resize(img: Any, size: Sequence[int], interpolation: InterpolationMode, antialias: Any) -> Any:
    del antialias  # Pillow's filters always are as wide as the scale asks
    pixels = pixels_of(img) if interpolation in _OWN_MODES else None
    out = None if pixels is None else resize_bytes(img.mode, pixels, size, interpolation)
    if out is None:
        return img.resize((size[1], size[0]), pillow_code(interpolation))
    out.info = img.info.copy()
    return out


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    return img.crop((left, top, left + width, top + height))


def hflip(img: Any) -> Any:
    return img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def vflip(img: Any) -> Any:
    return img.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def pad(img: Any, sides: Sequence[int], fill: Any, mode: str) -> Any:
    left, top, right, bottom = sides
    palette = img.getpalette() if img.mode == "P" else None
    if mode == "constant":
        out = ImageOps.expand(img, border=(left, top, right, bottom), fill=_fill(fill, img))
    else:
        cut = [max(-side, 0) for side in sides]
        if any(cut):
            img = img.crop((cut[0], cut[1], img.width - cut[2], img.height - cut[3]))
        left, top, right, bottom = (max(side, 0) for side in sides)
        array = np.asarray(img)
        widths = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
        out = Image.fromarray(np.pad(array, widths, mode=mode))  # type: ignore[call-overload]
    if palette is not None:
        if out.mode == "L":
            out = Image.frombytes("P", out.size, out.tobytes())
        out.putpalette(palette)
    return out


def affine(img: Any, matrix: Sequence[float], interpolation: InterpolationMode, fill: Any) -> Any:
    code = pillow_code(interpolation)
    return img.transform(
        img.size, Image.Transform.AFFINE, tuple(matrix), code, fillcolor=_fill(fill, img)
    )


def perspective(img: Any, coefficients: Sequence[float], interpolation: Any, fill: Any) -> Any:
    code = pillow_code(interpolation)
    return img.transform(
        img.size, Image.Transform.PERSPECTIVE, tuple(coefficients), code, fillcolor=_fill(fill, img)
    )


def rotate(img: Any, angle: float, interpolation: Any, expand: bool, center: Any, fill: Any) -> Any:
    center = None if center is None else tuple(center)
    return img.rotate(
        angle, pillow_code(interpolation), bool(expand), center, fillcolor=_fill(fill, img)
    )


def _adjust(img: Any, change: str, factor: float) -> Any:
    """The picture with other colours, None where its bytes cannot be had."""
    pixels = pixels_of(img) if math.isfinite(factor) else None
    if pixels is None:
        return None
    out, to = new(img.mode, img.size)
    if to is None:
        return None
    _C.ops._adjust_pixels(pixels, change, factor, out=to)
    return out


def adjust_brightness(img: Any, factor: float) -> Any:
    out = _adjust(img, "brightness", factor)
    return ImageEnhance.Brightness(img).enhance(factor) if out is None else out


def adjust_contrast(img: Any, factor: float) -> Any:
    out = _adjust(img, "contrast", factor)
    return ImageEnhance.Contrast(img).enhance(factor) if out is None else out


def adjust_saturation(img: Any, factor: float) -> Any:
    out = None if "transparency" in img.info else _adjust(img, "saturation", factor)
    if out is None:
        return ImageEnhance.Color(img).enhance(factor)
    out.info = img.info.copy()
    return out


def adjust_sharpness(img: Any, factor: float) -> Any:
    return ImageEnhance.Sharpness(img).enhance(factor)


def adjust_hue(img: Any, factor: float) -> Any:
    if img.mode in {"L", "1", "I", "F"}:
        return img
    out = _adjust(img, "hue", factor)
    if out is not None:
        return out
    hue, saturation, value = img.convert("HSV").split()
    turned = np.asarray(hue) + np.int32(factor * 255).astype(np.uint8)  # wraps around
    merged = Image.merge("HSV", (Image.fromarray(turned), saturation, value))
    return merged.convert(img.mode)


def adjust_gamma(img: Any, gamma: float, gain: float) -> Any:
    table = [int((255 + 1 - 1e-3) * gain * (v / 255.0) ** gamma) for v in range(256)]
    return img.convert("RGB").point(table * 3).convert(img.mode)


def to_grayscale(img: Any, channels: int) -> Any:
    grey = img.convert("L")
    return grey if channels == 1 else Image.merge("RGB", (grey, grey, grey))


def invert(img: Any) -> Any:
    return ImageOps.invert(img)


def posterize(img: Any, bits: int) -> Any:
    return ImageOps.posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    return ImageOps.solarize(img, threshold)  # type: ignore[arg-type]


def autocontrast(img: Any) -> Any:
    return ImageOps.autocontrast(img)


def equalize(img: Any) -> Any:
    return ImageOps.equalize(img)
