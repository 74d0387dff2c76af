"""The rules of masked tensors: ways into data and masks, and back.

Ops of one tensor keep the mask, ops of two want equal ones, reductions leave out what is masked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._rules import Rules
from rushlight.masked import _ops as masked
from rushlight.masked.maskedtensor.binary import BINARY_NAMES, INPLACE_BINARY_NAMES
from rushlight.masked.maskedtensor.core import (
    _SPARSE,
    _AsMaskedResult,
    _equal_masks,
    _make,
    _Out,
    _values_of,
    is_masked_tensor,
)
from rushlight.masked.maskedtensor.reductions import REDUCE_NAMES, reduce
from rushlight.masked.maskedtensor.unary import INPLACE_UNARY_NAMES, UNARY_NAMES

__all__ = ["IN_PLACE", "RULES", "Call"]

# These move elements and compute nothing: the mask's go where the data's go.
_MOVES = {
    "alias", "cat", "chunk", "clone", "concat", "concatenate", "contiguous", "detach",
    "diagonal", "expand", "flatten", "flip", "im2col", "col2im", "index", "index_select",
    "movedim", "narrow", "permute", "repeat", "reshape", "roll", "select", "select_backward",
    "slice", "slice_backward", "split", "split_with_sizes", "squeeze", "stack", "swapaxes",
    "swapdims", "t", "tensor_split", "tile", "transpose", "unbind", "unflatten", "unfold",
    "unfold_backward", "unsqueeze", "view", "_reshape_alias", "_unsafe_view", "__getitem__",
    "expand_as", "view_as", "reshape_as",
}  # fmt: skip
_SOFT = {"softmax", "log_softmax", "softmin"}
_UNARY = set(UNARY_NAMES) | {
    "__abs__", "__invert__", "__neg__", "__pow__", "__rpow__", "float_power", "to", "_to_copy",
    "double", "float", "half", "int", "long", "bool", "ones_like", "zeros_like",
}  # fmt: skip
_BINARY = set(BINARY_NAMES) | {
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
    "__rtruediv__", "__floordiv__", "__mod__", "__and__", "__or__", "__xor__", "__eq__", "__ne__",
    "__lt__", "__le__", "__gt__", "__ge__",
}  # fmt: skip
IN_PLACE = set(INPLACE_UNARY_NAMES) | set(INPLACE_BINARY_NAMES) | {"copy_"}


class Call:
    """One call: its ways into data and back, recorded or not."""

    def __init__(self, func, args, kwargs, recorded):
        self.func, self.args, self.kwargs = func, args, kwargs
        self.recorded = recorded

    def data(self, value):
        if not is_masked_tensor(value):
            return value
        if self.recorded and value.requires_grad and rushlight.is_grad_enabled():
            return _Out.apply(value)
        return value._data

    def masked(self, data: Tensor, mask: Tensor) -> Tensor:
        if data.requires_grad and rushlight.is_grad_enabled():
            return _AsMaskedResult.apply(data, mask)
        return _make(data, mask)

    def move(self, name: str) -> Tensor:
        def all_of(take: Callable[..., Any]) -> Tensor:
            def map_value(value):
                if isinstance(value, (tuple, list)):
                    return type(value)(map_value(v) for v in value)
                return take(value)

            return self.func(
                *map_value(list(self.args)), **{k: map_value(v) for k, v in self.kwargs.items()}
            )

        data = all_of(self.data)
        mask = all_of(lambda v: v._mask if is_masked_tensor(v) else v)
        if isinstance(data, Tensor):
            return self.masked(data, mask)
        return type(data)(self.masked(d, m) for d, m in zip(data, mask, strict=True))

    def unary(self, name):
        x, *rest = self.args
        if not is_masked_tensor(x) or any(map(is_masked_tensor, rest)):
            return self.binary(name)  # pow of two tensors
        data = _values_of(lambda v: self.func(v, *rest, **self.kwargs), self.data(x))
        return self.masked(data, x._mask)

    def binary(self, name: str) -> Tensor:
        first, second, *rest = self.args
        mask = _common_mask(first, second)
        pair = (self.data(first), self.data(second))
        tensors = [t for t in pair if isinstance(t, Tensor)]
        if mask.layout in _SPARSE and any(t.layout != mask.layout for t in tensors):
            raise TypeError("a sparse masked tensor goes with one of its own layout")

        def apply(*values: Tensor) -> Tensor:
            given = iter(values)
            operands = (next(given) if isinstance(t, Tensor) else t for t in pair)
            return self.func(*operands, *rest, **self.kwargs)

        data = _values_of(apply, *tensors)
        if data.shape != mask.shape:
            raise ValueError(f"a result of shape {data.shape} has no mask of shape {mask.shape}")
        return self.masked(data, mask)

    def in_place(self, binary):
        x, *rest = self.args
        if binary:
            _common_mask(x, rest[0])
            rest = [self.data(v) for v in rest]
        if x._data.layout in _SPARSE:
            rest = [v.values() if isinstance(v, Tensor) else v for v in rest]
            self.func(x._data.values(), *rest, **self.kwargs)
        else:
            self.func(x._data, *rest, **self.kwargs)
        return x

    def reduction(self, name):
        x, *rest = self.args
        data, mask = self.data(x), x._mask
        if mask.layout in _SPARSE:
            data, mask = data.to_dense(), mask.to_dense()
        return self.masked(*reduce(name, data, mask, rest, self.kwargs))

    def softmax(self, name: str) -> Tensor:
        x, *rest = self.args
        known = dict(zip(("dim", "dtype"), (v for v in rest if v is not None), strict=False))
        known |= {k: v for k, v in self.kwargs.items() if k != "_stacklevel"}
        made = getattr(masked, name)(
            self.data(x), known["dim"], dtype=known.get("dtype"), mask=x._mask
        )
        return self.masked(made, x._mask)

    def where(self, name: str) -> Tensor:
        condition, *pair = self.args
        if is_masked_tensor(condition):  # Tensor.where: self, condition, other
            condition, pair = pair[0], [condition, *pair[1:]]
        like = next(t for t in pair if is_masked_tensor(t))
        every = rushlight.ones_like(like._mask)
        masks = [t._mask if is_masked_tensor(t) else every for t in pair]
        data = rushlight.where(condition, *map(self.data, pair))
        return self.masked(data, rushlight.where(condition, *masks))

    def new_empty_strided(self, name: str) -> Tensor:
        x, *rest = self.args
        data = x._data.new_empty_strided(*rest, **self.kwargs)
        return self.masked(data, rushlight.ones_like(data, dtype=rushlight.bool))

    def number(self, name):
        return self.args[0]._data.item()

    def run(self, name):
        """The result; NotImplemented for what masked tensors do not have."""
        rule = RULES.get(name)
        return NotImplemented if rule is None else rule(self, name)


def _common_mask(first, second):
    masks = [t._mask for t in (first, second) if is_masked_tensor(t)]
    if len(masks) == 2 and not _equal_masks(*masks):
        raise ValueError(
            "Input masks must match. Give both tensors one mask first, for example by "
            "masked_tensor(t.get_data(), mask)."
        )
    return masks[0]


RULES = Rules(
    {
        **dict.fromkeys(REDUCE_NAMES, Call.reduction),
        **dict.fromkeys(_SOFT, Call.softmax),
        **dict.fromkeys(_BINARY, Call.binary),
        **dict.fromkeys(_UNARY, Call.unary),
        **dict.fromkeys(_MOVES, Call.move),
        "where": Call.where,
        "new_empty_strided": Call.new_empty_strided,
        "_local_scalar_dense": Call.number,
    }
)
