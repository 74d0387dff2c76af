"""Whether one tensor can take another's place: `_has_compatible_shallow_copy_type`."""

from __future__ import annotations

from rushlight import Tensor

__all__ = ["_has_compatible_shallow_copy_type"]


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether `input.data = from_` is possible: both have memory of one kind."""
    return input.layout == from_.layout and input.device.type == from_.device.type
