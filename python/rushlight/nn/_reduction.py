"""Reductions of losses by aten's numbers, and from the two flags of old."""

from __future__ import annotations

from rushlight.nn._arguments import _reduction

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction in aten: none 0, mean 1, sum 2."""
    if reduction not in _NUMBERS:
        raise ValueError(f"'{reduction}' is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction of the deprecated flags; None is True."""
    if emit_warning and not (size_average is None and reduce is None):
        return _reduction("mean", size_average, reduce)
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of the reduction of the deprecated flags in aten."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
