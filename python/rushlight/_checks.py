"""Checks of conditions with messages that are made only where they fail: `_check` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import _C

__all__ = [
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_type",
    "_check_value",
    "_check_with",
]


def _fail(error: type[Exception], message: Callable[[], Any] | None):
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error("Expected cond to be True, but got False." if message is None else str(message()))


def _check_with(error_type, cond, message):
    """Raise `error_type` with what `message()` gives, unless `cond` is True."""
    from rushlight._sym import SymBool

    if not isinstance(cond, bool | SymBool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if getattr(cond, "log", None) is not None:  # a program that is exported says so of a size
        cond.expect()  # type: ignore[union-attr]
    elif not cond:
        _fail(error_type, message)


def _check(cond, message=None):
    """RuntimeError unless `cond` is True."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """IndexError unless `cond` is True."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """ValueError unless `cond` is True."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """TypeError unless `cond` is True."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """NotImplementedError unless `cond` is True."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    """RuntimeError unless a number is at least 0 and at most `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all(cond, message=None):
    """RuntimeError unless all elements of a bool tensor are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(error_type, cond, message=None):
    """An error of this type unless all elements of a bool tensor are True."""
    if not isinstance(cond, _C.TensorBase):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _C.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def wrap_dim(dim: int, count: int) -> int:
    """The number from 0 of one of `count` dimensions; IndexError if it is none of them."""
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range: {dim} is not within {-count} ... {count - 1}")
    return dim % count
