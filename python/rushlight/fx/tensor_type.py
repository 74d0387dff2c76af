"""Types of tensors with sizes, some of which may be unknown (`Dyn`)."""

from __future__ import annotations

from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The type of tensors of a shape: `TensorType((2, Dyn, 4))`, in annotations `TensorType[2, 3]`.

    Args:
        dim: the sizes, a tuple or list; `Dyn` where one is unknown.

    Example:
        >>> from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise
        >>> known, open_ = TensorType((2, 3)), TensorType((2, Dyn))
        >>> (
        ...     is_consistent(known, open_),
        ...     is_more_precise(known, open_),
        ...     is_more_precise(open_, known),
        ... )
        (True, True, False)
    """

    def __init__(self, dim: Any) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(map(repr, self.__args__)))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        sizes = args[0] if isinstance(args[0], tuple) else args
        return TensorType(tuple(sizes))


class _DynType:
    """The type of everything: nothing is known of it."""

    def __init__(self) -> None:
        self.__name__ = "Dyn"  # as code says it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def _of_one_rank(t1: object, t2: object) -> bool:
    return (
        isinstance(t1, TensorType)
        and isinstance(t2, TensorType)
        and len(t1.__args__) == len(t2.__args__)
    )


def is_consistent(t1: object, t2: object) -> bool:
    """Whether a value can have both types: they agree wherever both are known.

    Args:
        t1: a type.
        t2: another one.

    For an example see `fx.tensor_type.TensorType`.
    """
    if t1 == t2 or isinstance(t1, _DynType) or isinstance(t2, _DynType):
        return True
    return _of_one_rank(t1, t2) and all(map(is_consistent, t1.__args__, t2.__args__))  # type: ignore[attr-defined]


def is_more_precise(t1: object, t2: object) -> bool:
    """Whether t1 knows everything that t2 knows.

    Args:
        t1: a type.
        t2: another one.

    For an example see `fx.tensor_type.TensorType`.
    """
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    return _of_one_rank(t1, t2) and all(map(is_more_precise, t1.__args__, t2.__args__))  # type: ignore[attr-defined]
