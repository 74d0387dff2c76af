"""Checks of settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.vision.transforms._measures import check_padding_mode


def numbers_of(value: Any, name: str) -> list[float]:
    """Two numbers from one, or from a sequence of one or two."""
    if not isinstance(value, int | float | Sequence):
        raise TypeError(f"{name} should be a number or two of them, not {value!r}")
    values = list(value) if isinstance(value, Sequence) else [value]
    if len(values) not in (1, 2):
        raise ValueError(f"{name} should have one number or two, not {len(values)}")
    for v in values:
        if not isinstance(v, int | float):
            raise ValueError(f"{name} should hold numbers, not {v!r}")
    return [float(v) for v in values] * (2 if len(values) == 1 else 1)


def check_padding(padding: Any, padding_mode: Any) -> None:
    """ValueError unless it is a whole number, or one, two or four of them, and a mode."""
    several = isinstance(padding, tuple | list)
    values = padding if several else [padding]
    if len(values) not in (1, 2, 4) or not all(isinstance(v, int) for v in values):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 of them, got {padding}")
    check_padding_mode(padding_mode)
