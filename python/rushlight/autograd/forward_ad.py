"""Forward-mode differentiation: dual tensors carry a value and a tangent.

Within `dual_level`, `make_dual(x, v)` is x with the tangent v, and every op on it computes the
tangent of its result beside the result, by the rule of its entry in the op table. `unpack_dual`
gives both. Tangents may require grad, and what they are computed by is recorded as all else is.
"""

from __future__ import annotations

from typing import NamedTuple

import rushlight
from rushlight import _C
from rushlight.autograd.grad_mode import ContextDecorator

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_NOT_LAST = (
    "Trying to exit a forward AD level that is not the innermost one: levels are left in the "
    "opposite order"
)

# The level that is open, as C++ numbers it; the public number is 0 within it and -1 outside.
_level: int | None = None
_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, which is None if the value depends on no dual tensor."""

    primal: rushlight.Tensor
    tangent: rushlight.Tensor | None


def enter_dual_level():
    """Open a level and return its number. RuntimeError inside another level: they do not nest."""
    global _level, _current_level
    if _level is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: there is a dual level already"
        )
    _level = _C._enter_forward_level()
    _current_level = 0
    return _current_level


def exit_dual_level(*, level=None):
    """Close a level: dual tensors keep their values and lose their tangents."""
    global _level, _current_level
    if _level is None or (level is not None and level != _current_level):
        raise RuntimeError(_NOT_LAST)
    ended, _level, _current_level = _level, None, -1
    _C._exit_forward_level(ended)


class dual_level(ContextDecorator):
    """A context manager that opens a level, in which tensors can be dual."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, kind, value, trace):
        exit_dual_level()


def _find_level(level):
    """The level of a public number, None for none that is open."""
    if level is None:
        level = _current_level
    return _level if level == 0 else None


def make_dual(tensor, tangent, *, level=None):
    """A view of a tensor that has a tangent of the same size.

    Raises:
        RuntimeError: outside of a level; for tangents of another size or dtype, and for a tensor
            that has a tangent already.
        ValueError: for integers.
    """
    number = _find_level(level)
    if number is None:
        raise RuntimeError(
            "make_dual: no level exists. Use it within `with dual_level():`, or call "
            "enter_dual_level() first"
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    return _C._make_dual(tensor, tangent, number)


def unpack_dual(tensor, *, level=None):
    """The value and the tangent of a dual tensor."""
    number = _find_level(level)
    if number is None:
        return UnpackedDualTensor(tensor, None)
    tangent = _C._tangent_of(tensor, number)
    return UnpackedDualTensor(_C._primal_of(tensor, number), tangent)


def _is_fwd_grad_enabled():
    return _C._is_fwd_grad_enabled()


class _set_fwd_grad_enabled(ContextDecorator):
    """Whether tangents are seen, and carried on by ops; set at once, until the scope ends."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before = _C._forward_limit()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, kind, value, trace):
        _C._set_forward_limit(self.before)

    def clone(self):
        return self.__class__(self.mode)
