"""Pictures on their way through several transforms: what is cut out of one or mirrored is not
copied before something needs it as a picture, and a tensor is made of it where it lies.

Each function has the name and the meaning of the one in functional.py, which has checked the
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import _C, Tensor
from rushlight.nn.modules import _hooks

from . import _pictures


class Part:
    """A part of a grey or coloured picture, in the picture's memory or still in its file.

    Attributes:
        pixels: bytes (H, W, 1) or (H, W, 4), as `_pictures.pixels_of` has them.
        shape: of them.
        mode: the picture's, "L" or "RGB".
        info: the picture's.
        mirrored: whether left and right are exchanged.
    """

    __slots__ = ("_all_of", "_pixels", "info", "mirrored", "mode")

    def __init__(self, pixels: Any, mode: str, info: dict, mirrored: bool, all_of: Any) -> None:
        self._pixels = pixels  # or what has `shape`, `cut` and, for the pixels, `read`
        self.mode = mode
        self.info = info
        self.mirrored = mirrored
        self._all_of = all_of  # the picture, if this is all of it

    @staticmethod
    def of(img: Any) -> Any:
        """All of a picture; the picture itself where its bytes cannot be had."""
        pixels = _pictures.pixels_of(img)
        return img if pixels is None else Part(pixels, img.mode, img.info, False, img)

    @property
    def pixels(self) -> Tensor:
        if not isinstance(self._pixels, Tensor):
            self._pixels = self._pixels.read()
        return self._pixels

    @property
    def shape(self) -> tuple[int, int, int]:
        return self._pixels.shape

    def cut(self, top: int, left: int, height: int, width: int) -> Part:
        """A rectangle of it."""
        if self.mirrored:
            left = self.shape[1] - left - width
        if isinstance(self._pixels, Tensor):
            pixels = self._pixels.narrow(0, top, height).narrow(1, left, width)
        else:
            pixels = self._pixels.cut(top, left, height, width)
        return Part(pixels, self.mode, self.info, self.mirrored, None)

    def flip(self) -> Part:
        """Mirrored, left and right."""
        return Part(self._pixels, self.mode, self.info, not self.mirrored, None)

    def picture(self) -> Any:
        """A picture of its own."""
        if self._all_of is not None:
            return self._all_of
        pixels = self.pixels.flip(1) if self.mirrored else self.pixels
        height, width, _ = pixels.shape
        out, to = _pictures.new(self.mode, (width, height))
        if to is None:
            return _pictures.picture_of(self.mode, pixels, self.info)
        to.copy_(pixels)
        out.info = self.info.copy()
        return out

    def planes(self, table: Tensor) -> Tensor:
        """A tensor (C, H, W) of what a table (C, 256) says of its bytes."""
        return _C.ops._planes_of_pixels(self.pixels, table, self.mirrored)


def takes(transform: Any) -> bool:
    """Whether a transform does its work on parts: its class says so, not only a base of it, and
    nothing else sees what it is called with.
    """
    if not type(transform).__dict__.get("takes_parts", False):
        return False
    own = getattr(transform, "__dict__", {})
    return not (
        "forward" in own
        or own.get("_forward_pre_hooks")
        or own.get("_forward_hooks")
        or _hooks.global_forward_pre_hooks
        or _hooks.global_forward_hooks
    )


def get_dimensions(img: Part) -> list[int]:
    height, width, lanes = img.shape
    return [1 if lanes == 1 else 3, height, width]


def crop(img: Part, top: int, left: int, height: int, width: int) -> Any:
    _, h, w = get_dimensions(img)
    if not (0 <= top < top + height <= h and 0 <= left < left + width <= w):
        return _pictures.crop(img.picture(), top, left, height, width)
    if (height, width) == (h, w):
        return img
    return img.cut(top, left, height, width)


def hflip(img: Part) -> Part:
    return img.flip()


def resize(img: Part, size: Sequence[int], interpolation: Any, antialias: Any) -> Any:
    out = None
    if not img.mirrored:
        out = _pictures.resize_bytes(img.mode, img.pixels, size, interpolation)
    if out is None:
        return _pictures.resize(img.picture(), size, interpolation, antialias)
    out.info = img.info.copy()
    return Part.of(out)


def pad(img: Part, sides: Sequence[int], fill: Any, mode: str) -> Any:
    return _pictures.pad(img.picture(), sides, fill, mode)
