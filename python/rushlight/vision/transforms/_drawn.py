"""What random transforms share: numbers from the generator of rushlight, and checks of their
settings.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn

from . import functional as F
from ._measures import two


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
            raise ValueError(
                f"If {name} is a single number, it is the bound of both sides: 0 or more"
            )
        value = [-value, value]  # type: ignore[operator]
    else:
        check_sequence(value, name, lengths)
    return [float(v) for v in value]


def size_of(value: Any) -> tuple[int, int]:
    """(height, width) from one number, a list of one, or both."""
    height, width = two(value)
    return height, width


def odd_size(value: Any) -> tuple[int, int]:
    """The size of a filter with a middle; ValueError if it has none."""
    size = size_of(value)
    if any(k <= 0 or k % 2 == 0 for k in size):
        raise ValueError(f"Kernel size value should be an odd number of pixels, not {value}")
    return size


def check_ranges(scale: Any, ratio: Any) -> None:
    """TypeError unless these are two sequences; a warning where they are not in order."""
    if not isinstance(scale, Sequence):
        raise TypeError("Scale should be a sequence")
    if not isinstance(ratio, Sequence):
        raise TypeError("Ratio should be a sequence")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warn("Scale and ratio should be of kind (min, max)")


def check_spread(sigma: Sequence[float]) -> None:
    """ValueError unless these are two positive numbers in order."""
    if not 0.0 < sigma[0] <= sigma[1]:
        raise ValueError(f"sigma values should be positive and in order (min, max), not {sigma}")


def per_axis(value: Any, name: str, wrong: type[Exception] = TypeError) -> Sequence[float]:
    """Two numbers from one, or from a sequence of one or two; `wrong` is raised for others."""
    if not isinstance(value, int | float | Sequence):
        raise TypeError(f"{name} should be a number or two of them, not {value!r}")
    if not isinstance(value, Sequence):
        return [float(value), float(value)]
    if len(value) not in (1, 2):
        raise ValueError(f"{name} should have one number or two, not {len(value)}")
    if any(not isinstance(v, int | float) for v in value):
        raise wrong(f"{name} should hold numbers, not {value!r}")
    return value if len(value) == 2 else [value[0], value[0]]


def fill_setting(fill: Any) -> Any:
    """A fill of 0 for None; TypeError unless it is a number or a sequence of them."""
    if not isinstance(fill, Sequence | numbers.Number) and fill is not None:
        raise TypeError(f"Fill should be a number or one for each channel, not {fill!r}")
    return 0 if fill is None else fill


def fill_for(img: Any, fill: Any) -> Any:
    """The fill of a setting, of tensors as a list with a number for each channel."""
    if not isinstance(img, Tensor):
        return fill
    if isinstance(fill, int | float):
        return [float(fill)] * F.get_dimensions(img)[0]
    return fill if fill is None else [float(f) for f in fill]


def _sides(
    height: int, width: int, scale: Sequence[float], ratio: Sequence[float]
) -> Iterator[tuple[int, int]]:
    """Ten rectangles whose share of an area and whose ratio of sides are drawn: the side that the
    ratio makes longer, and the other.
    """
    logs = rushlight.log(rushlight.tensor(ratio))
    for _ in range(10):
        area = height * width * uniform(scale[0], scale[1])
        drawn = rushlight.empty(1).uniform_(logs[0].item(), logs[1].item())
        aspect = float(rushlight.exp(drawn).item())
        yield round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))


def part(
    height: int, width: int, scale: Sequence[float], ratio: Sequence[float]
) -> tuple[int, int, int, int]:
    """Top, left, height and width of a part of an image; the largest in the middle where ten tries
    do not fit. The ratio is that of width to height.
    """
    for w, h in _sides(height, width, scale, ratio):
        if 0 < w <= width and 0 < h <= height:
            top = integer(0, height - h + 1)
            return top, integer(0, width - w + 1), h, w
    h, w = height, width
    if width / height < min(ratio):
        h = round(width / min(ratio))
    elif width / height > max(ratio):
        w = round(height * max(ratio))
    return (height - h) // 2, (width - w) // 2, h, w


def patch(
    dimensions: Sequence[int],
    scale: Sequence[float],
    ratio: Sequence[float],
    value: Sequence[float] | None,
) -> tuple[int, int, int, int, Tensor] | None:
    """Top, left, height and width of what is erased from an image of (channels, height, width), and
    what is written there: normal noise for None. None where ten tries do not fit. The ratio is that
    of height to width.
    """
    channels, height, width = dimensions
    for h, w in _sides(height, width, scale, ratio):
        if h < height and w < width:
            if value is None:  # drawn before the place is
                v = rushlight.empty([channels, h, w], dtype=rushlight.float32).normal_()
            else:
                v = rushlight.tensor(value)[:, None, None]
            top = integer(0, height - h + 1)
            return top, integer(0, width - w + 1), h, w, v
    return None
