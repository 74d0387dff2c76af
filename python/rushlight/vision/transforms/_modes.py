"""How pixels between pixels are found."""

from __future__ import annotations

from enum import Enum
from typing import Any


class InterpolationMode(Enum):
    """Interpolation modes; BOX, HAMMING and LANCZOS are for Pillow images only.

    Example:
        >>> torch.vision.transforms.InterpolationMode.BILINEAR.value
        'bilinear'
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_CODES = {  # Pillow's
    InterpolationMode.NEAREST: 0,
    InterpolationMode.NEAREST_EXACT: 0,
    InterpolationMode.LANCZOS: 1,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
}
_OF_CODE = {c: m for m, c in _CODES.items() if m is not InterpolationMode.NEAREST_EXACT}


def pillow_code(mode: InterpolationMode) -> int:
    """The number by which Pillow knows it."""
    return _CODES[mode]


def mode_of_code(i: int) -> InterpolationMode:
    """The mode of Pillow's number."""
    return _OF_CODE[i]


def as_mode(value: Any) -> InterpolationMode:
    """The mode, also from Pillow's number (else KeyError); TypeError for anything else."""
    if isinstance(value, int):
        return _OF_CODE[value]
    if not isinstance(value, InterpolationMode):
        raise TypeError(
            "Argument interpolation should be a InterpolationMode, or Pillow's number of one, but "
            f"got {type(value).__name__}"
        )
    return value


def mode_of_name(value: Any) -> InterpolationMode:
    """The mode, also from its name or Pillow's number; ValueError for anything else."""
    if isinstance(value, str):
        names = [mode.value for mode in InterpolationMode]
        if value not in names:
            raise ValueError(f"Invalid interpolation mode: {value!r} is none of {names}")
        return InterpolationMode(value)
    if not isinstance(value, int | InterpolationMode):
        raise ValueError(
            "Argument interpolation should be an `InterpolationMode`, or Pillow's number of one, "
            f"but got {value}"
        )
    return as_mode(value)
