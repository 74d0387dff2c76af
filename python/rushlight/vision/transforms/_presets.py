"""What the weights of models want done to their images before."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor, nn

from . import functional as F
from ._modes import InterpolationMode

__all__ = [
    "ImageClassification",
    "ObjectDetection",
    "OpticalFlow",
    "SemanticSegmentation",
    "VideoClassification",
]

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet


def _to_float(img: Any) -> Tensor:
    """A picture or a tensor as a tensor of numbers from 0 to 1."""
    tensor = img if isinstance(img, Tensor) else F.pil_to_tensor(img)
    return F.convert_image_dtype(tensor, rushlight.float32)


class _Preset(nn.Module):
    _shows: tuple[str, ...] = ()

    def __repr__(self) -> str:
        said = "".join(f"\n    {name}={getattr(self, name)}" for name in self._shows)
        return f"{type(self).__name__}({said}{chr(10) if said else ''})"

    def describe(self) -> str:
        """The settings in words."""
        said = ", ".join(f"{name}={getattr(self, name)}" for name in self._shows)
        return f"Images become tensors of numbers from 0 to 1{'; ' + said if said else ''}."


class ObjectDetection(_Preset):
    """Converts to floats from 0 to 1."""

    def forward(self, img: Any) -> Tensor:
        return _to_float(img)


class ImageClassification(_Preset):
    """Resizes, crops the centre, converts to floats from 0 to 1, and normalises."""

    _shows = ("crop_size", "resize_size", "mean", "std", "interpolation")

    def __init__(
        self,
        *,
        crop_size: int,
        resize_size: int = 256,
        mean: tuple[float, ...] = _MEAN,
        std: tuple[float, ...] = _STD,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.crop_size = [crop_size]
        self.resize_size = [resize_size]
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = interpolation
        self.antialias = antialias

    def forward(self, img: Any) -> Tensor:
        img = F.resize(img, self.resize_size, self.interpolation, antialias=self.antialias)
        img = F.center_crop(img, self.crop_size)
        return F.normalize(_to_float(img), self.mean, self.std)


class VideoClassification(_Preset):
    """Resizes frames (..., T, C, H, W), crops the centre, and normalises, to (..., C, T, H, W)."""

    _shows = ("crop_size", "resize_size", "mean", "std", "interpolation")

    def __init__(
        self,
        *,
        crop_size: tuple[int, int],
        resize_size: tuple[int, ...],
        mean: tuple[float, ...] = (0.43216, 0.394666, 0.37645),
        std: tuple[float, ...] = (0.22803, 0.22145, 0.216989),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    ) -> None:
        super().__init__()
        self.crop_size = list(crop_size)
        self.resize_size = list(resize_size)
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = interpolation

    def forward(self, vid: Tensor) -> Tensor:
        batch = vid if vid.ndim == 5 else vid.unsqueeze(0)
        n, t, c, h, w = batch.shape
        frames = batch.reshape(-1, c, h, w)
        # The weights were trained on frames that nothing had smoothed.
        frames = F.resize(frames, self.resize_size, self.interpolation, antialias=False)
        frames = _to_float(F.center_crop(frames, self.crop_size))
        frames = F.normalize(frames, self.mean, self.std)
        height, width = frames.shape[-2:]
        out = frames.view(n, t, c, height, width).permute(0, 2, 1, 3, 4)
        return out if vid.ndim == 5 else out.squeeze(0)


class SemanticSegmentation(_Preset):
    """Resizes, converts to floats from 0 to 1, and normalises."""

    _shows = ("resize_size", "mean", "std", "interpolation")

    def __init__(
        self,
        *,
        resize_size: int | None,
        mean: tuple[float, ...] = _MEAN,
        std: tuple[float, ...] = _STD,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.resize_size = [resize_size] if resize_size is not None else None
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = interpolation
        self.antialias = antialias

    def forward(self, img: Any) -> Tensor:
        if self.resize_size is not None:
            img = F.resize(img, self.resize_size, self.interpolation, antialias=self.antialias)
        return F.normalize(_to_float(img), self.mean, self.std)


class OpticalFlow(_Preset):
    """Converts two images to floats from -1 to 1."""

    def forward(self, img1: Any, img2: Any) -> tuple[Tensor, Tensor]:
        first, second = (
            F.normalize(_to_float(img), [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]).contiguous()
            for img in (img1, img2)
        )
        return first, second
