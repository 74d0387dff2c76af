"""Forward-mode differentiation: dual tensors carry a value and a tangent.

Within `dual_level`, `make_dual(x, v)` is x with the tangent v, and every op on it computes the
tangent of its result beside the result, by the rule of its entry in the op table. `unpack_dual`
gives both. Tangents may require grad, and what they are computed by is recorded as all else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import rushlight
from rushlight import _C
from rushlight.autograd.grad_mode import ContextDecorator

if TYPE_CHECKING:
    from rushlight import Tensor

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
    """A value and its tangent, which is None if the value depends on no dual tensor.

    Args:
        primal: the value.
        tangent: its tangent, or None.

    Example:
        >>> import rushlight.autograd.forward_ad as forward_ad
        >>> with forward_ad.dual_level():
        ...     print(forward_ad.unpack_dual(torch.tensor([4.0])).tangent)
        None
    """

    primal: rushlight.Tensor
    tangent: rushlight.Tensor | None


def enter_dual_level():
    """Open a level and return its number. RuntimeError inside another level: they do not nest.

    Example:
        >>> import rushlight.autograd.forward_ad as forward_ad
        >>> forward_ad.enter_dual_level()
        0
        >>> forward_ad.exit_dual_level()
    """
    global _level, _current_level
    if _level is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: there is a dual level already"
        )
    _level = _C._enter_forward_level()
    _current_level = 0
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close a level: dual tensors keep their values and lose their tangents.

    For an example see `autograd.forward_ad.enter_dual_level`.

    Args:
        level: the number of the level; None: the one that is open.
    """
    global _level, _current_level
    if _level is None or (level is not None and level != _current_level):
        raise RuntimeError(_NOT_LAST)
    ended, _level, _current_level = _level, None, -1
    _C._exit_forward_level(ended)


class dual_level(ContextDecorator):
    """A context manager that opens a level, in which tensors can be dual.

    Example:
        >>> import rushlight.autograd.forward_ad as forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(torch.tensor([4.0]), torch.tensor([1.0]))
        ...     print(forward_ad.unpack_dual(x * x).tangent)
        tensor([8.])
    """

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, kind, value, trace):
        exit_dual_level()


def _find_level(level):
    """The level of a public number, None for none that is open."""
    if level is None:
        level = _current_level
    return _level if level == 0 else None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that has a tangent of the same size.

    For an example see `autograd.forward_ad.dual_level`.

    Args:
        tensor: the value.
        tangent: its tangent.
        level: the number of the level; None: the one that is open.

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


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a dual tensor.

    For an example see `autograd.forward_ad.dual_level`.

    Args:
        tensor: the dual tensor.
        level: the number of the level; None: the one that is open.
    """
    number = _find_level(level)
    if number is None:
        return UnpackedDualTensor(tensor, None)
    tangent = _C._tangent_of(tensor, number)
    return UnpackedDualTensor(_C._primal_of(tensor, number), tangent)


def _is_fwd_grad_enabled() -> bool:
    return _C._is_fwd_grad_enabled()


class _set_fwd_grad_enabled(ContextDecorator):
    """Whether tangents are seen, and carried on by ops; set at once, until the scope ends."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before = _C._forward_limit()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, value, trace):
        _C._set_forward_limit(self.before)

    def clone(self):
        return self.__class__(self.mode)
