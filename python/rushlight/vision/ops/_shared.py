"""What several ops ask: numbers wide enough for areas, and how losses are reduced."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import rushlight as torch
from rushlight import Tensor


def widen(t: Tensor) -> Tensor:
    """`t` as a dtype whose products do not overflow: 32 bits or more, floating or not as it was."""
    if t.is_floating_point():
        return t if t.dtype in (torch.float32, torch.float64) else t.float()
    return t if t.dtype in (torch.int32, torch.int64) else t.int()


def reduce(loss: Tensor, reduction: str, empty_is_zero: bool = False) -> Tensor:
    """`loss` as it is ("none"), its "mean" or its "sum"; ValueError for other words."""
    if reduction == "none":
        return loss
    if reduction == "sum" or (reduction == "mean" and empty_is_zero and loss.numel() == 0):
        return loss.sum()
    if reduction == "mean":
        return loss.mean()
    raise ValueError(
        f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: "
        "'none', 'mean', 'sum'"
    )


def pair(value: Any, name: str) -> tuple[Any, Any]:
    """Two numbers: one stands for both; ValueError for other counts."""
    values = tuple(value) if isinstance(value, Iterable) else (value, value)
    if len(values) != 2:
        raise ValueError(f"{name} is one number or two, but got {value!r}")
    return values


def register(op: Callable[..., Any]) -> Callable[..., Any]:
    """An op that torchvision calls by its registry, where arguments of wrong types and numbers
    that are too large are RuntimeErrors.
    """

    @functools.wraps(op)
    def call(*args: Any) -> Any:
        try:
            return op(*args)
        except (TypeError, ValueError) as error:
            raise RuntimeError(str(error)) from None

    return call


def rename_layers(
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    names: Iterable[tuple[str, str]],
) -> None:
    """In a file of a module's version 1 the weights and biases of layers get the names of now."""
    if (local_metadata.get("version") or 1) >= 2:
        return
    for old, new in names:
        for what in ("weight", "bias"):
            if f"{prefix}{old}.{what}" in state_dict:
                state_dict[f"{prefix}{new}.{what}"] = state_dict.pop(f"{prefix}{old}.{what}")


def n_of(value, n: int) -> tuple:
    """A tuple of n: `value` repeated, or the values it has."""
    return tuple(value) if isinstance(value, list | tuple) else (value,) * n
