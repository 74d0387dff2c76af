"""Arguments that functions and modules check and convert alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight import _C
from rushlight._warnings import warn


def _dims(function, input):
    """How many dimensions the first argument of a function has; TypeError if it is no tensor."""
    if not isinstance(input, _C.TensorBase):
        kind = type(input).__name__
        raise TypeError(f"{function}(): argument 'input' (position 1) must be Tensor, not {kind}")
    return input.dim()


def _probability(p):
    """A dropout probability, checked."""
    try:
        is_none = p < 0.0 or p > 1.0
    except TypeError:
        raise TypeError(
            f"dropout(): argument 'p' must be a number, not {type(p).__name__}"
        ) from None
    if is_none:
        hint = f": {p} % are p={p / 100:g}" if 2 <= p <= 100 else ""
        raise ValueError(f"dropout probability has to be between 0 and 1, not {p}{hint}")
    return p


def _reduction(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """A loss's reduction; the two old flags come first if given, and warn."""
    if size_average is None and reduce is None:
        return reduction
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = ("mean" if size_average else "sum") if reduce else "none"
    warn(
        "size_average and reduce args will be deprecated, please use "
        f"reduction='{reduction}' instead.",
    )
    return reduction


def _one_or_two(p):
    """The exponent of a hinge loss, checked."""
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    return p


def _positive_margin(margin):
    """The margin of the triplet loss, checked."""
    if margin <= 0:
        raise ValueError(
            f"TripletMarginLoss: expected margin to be greater than 0, but it is {margin}"
        )
    return margin


def _or_else(value, other):
    """A value, or another one where it is None."""
    return other if value is None else value


def _repeat(value: int | Sequence[int], n: int) -> tuple[int, ...]:
    """A tuple of `n` for a single value; a tuple of what any iterable holds."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


def _ntuple(n: int, name: str = "parse") -> Callable[..., Any]:
    """`_repeat` for one `n`."""

    def parse(value):
        return _repeat(value, n)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _list_with_default(out_size: int | Sequence[int], defaults: Sequence[int]) -> int | list[int]:
    """The sizes of `out_size`, those that are None from the end of `defaults`."""
    if isinstance(out_size, int):
        return out_size
    more = len(defaults) - len(out_size)
    if more <= 0:
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return list(map(_or_else, out_size, defaults[more:]))
