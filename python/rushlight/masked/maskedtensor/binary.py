"""Ops of two tensors for masked tensors: both masks are equal, or one tensor has no mask."""

# ruff: noqa: SIM905

from __future__ import annotations

from rushlight._ops import ops

__all__: list[str] = []

BINARY_NAMES = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift div divide floor_divide fmod logaddexp logaddexp2 mul multiply "
    "nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt "
    "less_equal lt less maximum minimum fmax fmin not_equal"
).split()
_ONLY_NEW = {"logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin"}
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES if name not in _ONLY_NEW]

NATIVE_BINARY_FNS = [getattr(ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(ops.aten, name) for name in INPLACE_BINARY_NAMES]
