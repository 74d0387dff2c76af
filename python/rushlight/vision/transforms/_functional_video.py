"""Transforms of clips as functions: tensors (C, T, H, W)."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight
from rushlight import Tensor
from rushlight.nn.functional import interpolate


def _clip(clip: Tensor) -> Tensor:
    """The clip; TypeError unless it is a tensor, ValueError unless it has four dimensions."""
    if not isinstance(clip, Tensor):
        raise TypeError(f"clip should be Tensor. Got {type(clip)}")
    if clip.dim() != 4:
        raise ValueError(f"clip should be 4D. Got {clip.dim()}D")
    return clip


def crop(clip: Tensor, i: int, j: int, h: int, w: int) -> Tensor:
    """The part of all frames whose top left corner is (i, j)."""
    return _clip(clip)[..., i : i + h, j : j + w]


def center_crop(clip: Tensor, crop_size: Sequence[int]) -> Tensor:
    """The middle of all frames; ValueError if it is larger than they are."""
    height, width = crop_size
    rows, columns = (_clip(clip).size(-2) - height, clip.size(-1) - width)
    if rows < 0 or columns < 0:
        raise ValueError("height and width must be no smaller than crop_size")
    return crop(clip, round(rows / 2), round(columns / 2), height, width)


def resize(clip: Tensor, target_size: Sequence[int], interpolation_mode: str) -> Tensor:
    """Frames of another size (H, W), without antialiasing."""
    if len(target_size) != 2:
        raise ValueError(f"target size should be tuple (height, width), instead got {target_size}")
    size = list(target_size)
    return interpolate(clip, size=size, mode=interpolation_mode, align_corners=False)


def resized_crop(
    clip: Tensor,
    i: int,
    j: int,
    h: int,
    w: int,
    size: Sequence[int],
    interpolation_mode: str = "bilinear",
) -> Tensor:
    """A part of all frames, at another size."""
    return resize(crop(clip, i, j, h, w), size, interpolation_mode)


def to_tensor(clip: Tensor) -> Tensor:
    """Bytes (T, H, W, C) as numbers from 0 to 1, (C, T, H, W)."""
    if _clip(clip).dtype != rushlight.uint8:
        raise TypeError(f"clip tensor should have data type uint8. Got {clip.dtype}")
    return clip.float().permute(3, 0, 1, 2) / 255.0


def normalize(
    clip: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    """(clip - mean) / std, with one of each for each channel."""
    out = _clip(clip) if inplace else _clip(clip).clone()
    means, deviations = (
        rushlight.as_tensor(v, dtype=clip.dtype, device=clip.device)[:, None, None, None]
        for v in (mean, std)
    )
    return out.sub_(means).div_(deviations)


def hflip(clip: Tensor) -> Tensor:
    """Left and right exchanged in all frames."""
    return _clip(clip).flip(-1)
