"""What random transforms share: numbers from the generator of rushlight, and checks of their
settings.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from . import functional as F


def uniform(low: float, high: float) -> float:
    """A number between two others."""
    return float(rushlight.empty(1).uniform_(float(low), float(high)).item())


def integer(low: int, high: int) -> int:
    """A whole number from low to high - 1."""
    return int(rushlight.randint(low, high, (1,)).item())


def happens(p: float) -> bool:
    """True with probability p."""
    return bool(rushlight.rand(1).item() < p)


def check_sequence(value: Any, name: str, lengths: tuple[int, ...]) -> None:
    """TypeError unless it is a list or a tuple, ValueError unless it has one of these lengths."""
    said = str(lengths[0]) if len(lengths) == 1 else " or ".join(str(n) for n in lengths)
    if not isinstance(value, Sequence):
        raise TypeError(f"{name} should be a sequence of length {said}.")
    if len(value) not in lengths:
        raise ValueError(f"{name} should be a sequence of length {said}.")


def angles(value: Any, name: str, lengths: tuple[int, ...] = (2,)) -> list[float]:
    """A range of angles: -value to value for one number, which must not be negative."""
    if isinstance(value, numbers.Number):
        if value < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be positive.")
        value = [-value, value]  # type: ignore[operator]
    else:
        check_sequence(value, name, lengths)
    return [float(v) for v in value]


def size_of(value: Any) -> tuple[int, int]:
    """(height, width) from one number, a list of one, or both."""
    height, width = F._two(value)
    return height, width


def fill_for(img: Any, fill: Any) -> Any:
    """The fill of a setting, of tensors as a list with a number for each channel."""
    if not isinstance(img, Tensor):
        return fill
    if isinstance(fill, int | float):
        return [float(fill)] * F.get_dimensions(img)[0]
    return fill if fill is None else [float(f) for f in fill]


def window(
    height: int,
    width: int,
    scale: Sequence[float],
    ratio: Sequence[float],
    fits: Any,
) -> tuple[int, int] | None:
    """(height, width) of a window whose share of the area and whose ratio of sides are drawn.

    At most ten are tried; None where `fits(height, width)` refuses all.
    """
    logs = rushlight.log(rushlight.tensor(ratio))
    for _ in range(10):
        area = height * width * uniform(scale[0], scale[1])
        drawn = rushlight.empty(1).uniform_(logs[0].item(), logs[1].item())
        aspect = float(rushlight.exp(drawn).item())
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if fits(h, w):
            return h, w
    return None
