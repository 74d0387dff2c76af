"""Transforms of clips: tensors (C, T, H, W)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from rushlight import Tensor

from . import _functional_video as F
from .transforms import RandomCrop, RandomResizedCrop

__all__ = [
    "CenterCropVideo",
    "NormalizeVideo",
    "RandomCropVideo",
    "RandomHorizontalFlipVideo",
    "RandomResizedCropVideo",
    "ToTensorVideo",
]


def _two(size: int | Sequence[int]) -> tuple[int, int]:
    return (int(size), int(size)) if isinstance(size, int | float) else (size[0], size[1])


class RandomCropVideo(RandomCrop):
    """Crops at a random position to a given size, the same for all frames."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__(_two(size))

    def __call__(self, clip: Tensor) -> Tensor:
        return F.crop(clip, *self.get_params(clip, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class RandomResizedCropVideo(RandomResizedCrop):
    """Crops with a random position, size and aspect ratio, the same for all frames, and resizes."""

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation_mode: str = "bilinear",
    ) -> None:
        if isinstance(size, tuple) and len(size) != 2:
            raise ValueError(f"size should be tuple (height, width), instead got {size}")
        super().__init__(_two(size), scale, ratio)
        self.interpolation_mode = interpolation_mode

    def __call__(self, clip: Tensor) -> Tensor:
        place = self.get_params(clip, self.scale, self.ratio)
        return F.resized_crop(clip, *place, self.size, self.interpolation_mode)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, "
            f"interpolation_mode={self.interpolation_mode}, scale={self.scale}, ratio={self.ratio})"
        )


class _OfClips:
    """A transform with one setting or none, which its text shows."""

    _shows: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self._shows)
        return type(self).__name__ + (f"({shown})" if shown else "")


class CenterCropVideo(_OfClips):
    """Crops the centre of all frames."""

    _shows = ("crop_size",)

    def __init__(self, crop_size: int | Sequence[int]) -> None:
        self.crop_size = _two(crop_size)

    def __call__(self, clip: Tensor) -> Tensor:
        return F.center_crop(clip, self.crop_size)


class NormalizeVideo(_OfClips):
    """Normalises channels: (clip - mean) / std."""

    _shows = ("mean", "std", "inplace")

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, clip: Tensor) -> Tensor:
        return F.normalize(clip, self.mean, self.std, self.inplace)


class ToTensorVideo(_OfClips):
    """Converts bytes (T, H, W, C) to numbers from 0 to 1, (C, T, H, W)."""

    def __call__(self, clip: Tensor) -> Tensor:
        return F.to_tensor(clip)


class RandomHorizontalFlipVideo(_OfClips):
    """Flips all frames horizontally with probability p, drawn by Python's `random`."""

    _shows = ("p",)

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, clip: Tensor) -> Tensor:
        return F.hflip(clip) if random.random() < self.p else clip
