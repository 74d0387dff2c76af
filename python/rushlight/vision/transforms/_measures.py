"""Sizes, matrices and coefficients of transforms of geometry, and checks of their settings."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor


def needs_longest(max_size: Any) -> str:
    """Why a resize by the longer edge alone is refused."""
    return f"max_size must be an integer where size=None, for it is the longer edge; got {max_size}"


def resized_size(
    image: Sequence[int], size: int | Sequence[int] | None, max_size: int | None = None
) -> list[int]:
    """Height and width that a resize gives an image of some height and width.

    `size` is both, or the shorter edge, or None: the longer edge is `max_size` then.
    """
    size = [size] if isinstance(size, int) else size
    if size is not None and len(size) not in (1, 2):
        raise ValueError(f"Size must be an int or one or two of them, not {len(size)}")
    height, width = image
    short, long = min(image), max(image)
    if size is None:
        if not isinstance(max_size, int):
            raise ValueError(needs_longest(max_size))
        new_short, new_long = int(max_size * short / long), max_size
        return [new_long, new_short] if width <= height else [new_short, new_long]
    if max_size is not None and len(size) != 1:
        raise ValueError(
            "max_size should only be passed if size is one number, that of the shorter edge; "
            f"it is {tuple(size)}"
        )
    if len(size) == 2:
        return list(size)
    new_short, new_long = size[0], int(size[0] * long / short)
    if max_size is not None:
        if max_size <= size[0]:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the shorter edge, {size[0]}"
            )
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return [new_long, new_short] if width <= height else [new_short, new_long]


def check_padding_mode(mode: Any) -> None:
    modes = ("constant", "edge", "reflect", "symmetric")
    if mode not in modes:
        raise ValueError(f"Padding mode should be either of {', '.join(modes)}, not {mode!r}")


def check_padding(padding: Any, padding_mode: Any) -> None:
    """TypeError or ValueError unless `pad` takes them."""
    if not isinstance(padding, numbers.Number | tuple | list):
        raise TypeError("Got inappropriate padding arg")
    if not isinstance(padding_mode, str):
        raise TypeError("Got inappropriate padding_mode arg")
    if isinstance(padding, tuple | list) and len(padding) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 of them, not {len(padding)}")
    check_padding_mode(padding_mode)


def sides_of(padding: Any) -> list[int]:
    """Left, top, right and bottom of a padding that `check_padding` takes."""
    sides = list(padding) if isinstance(padding, tuple | list) else [padding]
    return sides * (4 // len(sides))


NOT_TWO = "Please provide only two dimensions: size is a number or (height, width)"


def two(size: Any, message: str = NOT_TWO) -> tuple:
    """Height and width: two numbers as they are, one for both. ValueError for more."""
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    size = tuple(size) * (2 if len(size) == 1 and not isinstance(size, bytes) else 1)
    if len(size) != 2:
        raise ValueError(message)
    return size


def middle(image: Sequence[int], output_size: Any) -> tuple[int, int, int, int]:
    """Top, left, height and width of the middle of an image of some height and width."""
    height, width = two(output_size)
    return round((image[0] - height) / 2.0), round((image[1] - width) / 2.0), height, width


def _turn_and_shear(angle: float, shear: Sequence[float]) -> tuple[float, float, float, float]:
    """The rows of the matrix of a turn after shears, whose determinant is 1."""
    turn, (sx, sy) = math.radians(angle), (math.radians(s) for s in shear)
    a = math.cos(turn - sy) / math.cos(sy)
    c = math.sin(turn - sy) / math.cos(sy)
    return a, -a * math.tan(sx) - math.sin(turn), c, -c * math.tan(sx) + math.cos(turn)


def affine_matrix(
    center: Sequence[float],
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
) -> list[float]:
    """The matrix, row after row, that says where a point goes.

    The transform turns, shears and scales around the centre, then translates: T C R S C⁻¹.
    """
    a, b, c, d = (value * scale for value in _turn_and_shear(angle, shear))
    (cx, cy), (tx, ty) = center, translate
    return [a, b, cx + tx - a * cx - b * cy, c, d, cy + ty - c * cx - d * cy]


def inverse_affine(
    center: Sequence[float],
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
) -> list[float]:
    """The inverse of `affine_matrix`: where an output's pixel comes from."""
    a, b, c, d = _turn_and_shear(angle, shear)
    a, b, c, d = d / scale, -b / scale, -c / scale, a / scale
    (cx, cy), (tx, ty) = center, translate
    x, y = -cx - tx, -cy - ty
    return [a, b, a * x + b * y + cx, c, d, c * x + d * y + cy]


def check_turn(angle: Any, center: Any) -> None:
    """TypeError unless it is an angle, and a centre or None."""
    if not isinstance(angle, int | float):
        raise TypeError("Argument angle should be int or float")
    if center is not None and not isinstance(center, list | tuple):
        raise TypeError("Argument center should be a sequence")


def check_affine(angle: Any, translate: Any, scale: float, shear: Any, center: Any) -> list[float]:
    """The shears along x and y; TypeError or ValueError unless `affine` takes all of it."""
    check_turn(angle, center)
    if not isinstance(translate, list | tuple):
        raise TypeError("Argument translate should be a sequence")
    if len(translate) != 2:
        raise ValueError(f"Argument translate should be a sequence (x, y), not {translate}")
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    if not isinstance(shear, numbers.Number | list | tuple):
        raise TypeError(f"Shear should be either a number or a pair (x, y), not {shear!r}")
    shears = list(shear) if isinstance(shear, list | tuple) else [shear, 0.0]
    shears = shears * (2 if len(shears) == 1 else 1)
    if len(shears) != 2:
        raise ValueError(f"Shear should be a sequence of an angle per axis (x, y), not {shear}")
    return shears


def perspective_coefficients(
    startpoints: Any, endpoints: Any, coefficients: Sequence[float] | None = None
) -> Sequence[float]:
    """The given ones, or else those from end to start: a … h of
    x' = (ax + by + c) / (gx + hy + 1), y' = (dx + ey + f) / (gx + hy + 1).
    """
    if coefficients is not None:
        if startpoints is not None and endpoints is not None:
            raise ValueError(
                "startpoints and endpoints, or coefficients: pass one of the two, not both"
            )
        if len(coefficients) != 8:
            raise ValueError("Argument coefficients should have 8 float values")
        return coefficients
    if startpoints is None or endpoints is None:
        raise ValueError(
            "coefficients are None, so startpoints and endpoints must have non `None` values"
        )
    return corner_coefficients(startpoints, endpoints)


def corner_coefficients(startpoints: Any, endpoints: Any) -> list[float]:
    """The coefficients from end to start, by four corners of each."""
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ValueError(
            f"Please provide exactly four corners: startpoints has {len(startpoints)} of them, "
            f"endpoints {len(endpoints)}"
        )
    rows = []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    a = rushlight.tensor(rows, dtype=rushlight.float64)
    b = rushlight.tensor(startpoints, dtype=rushlight.float64).view(8)
    found = rushlight.linalg.lstsq(a, b, driver="gels").solution
    return found.to(rushlight.float32).tolist()


def check_displacement(displacement: Any, image: Sequence[int]) -> None:
    """TypeError or ValueError unless it is one of an image of some height and width."""
    if not isinstance(displacement, Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    expected = (1, *image, 2)
    if expected != displacement.shape:
        raise ValueError(
            f"displacement shape should be {expected} for this image, not "
            f"{tuple(displacement.shape)}"
        )
