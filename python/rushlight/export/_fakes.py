"""Fake tensors whose sizes are told to Python as expressions, or noted as they are used."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import _C
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.export._sizes import Log, SizeBool, SizeInt, _plain

__all__ = ["NotingFake", "NotingMode", "SizedFake", "Sizes"]

_SHAPE: Any = vars(_C.TensorBase)["shape"]


class Sizes(tuple):
    """The sizes of a tensor, as `torch.Size`, some of them expressions."""

    __slots__ = ()

    def numel(self) -> Any:
        """Their product."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"


class _Answers(FakeTensor):
    """Answers questions about sizes by `sizes()`."""

    def sizes(self) -> Any:
        raise NotImplementedError

    @property
    def shape(self) -> Any:
        """The sizes."""
        return self.sizes()

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or one of them."""
        sizes = self.sizes()
        if dim is None:
            return sizes
        if not -len(sizes) <= dim < len(sizes):
            raise IndexError(f"Dimension out of range: got {dim} of {len(sizes)} dimensions")
        return sizes[dim]

    def numel(self) -> Any:
        """The number of elements."""
        return math.prod(self.sizes())

    nelement = numel

    def __len__(self) -> Any:
        sizes = self.sizes()
        if not sizes:
            raise TypeError("len() of a 0-d tensor")
        return int(sizes[0])


class SizedFake(_Answers):
    """A fake tensor that a node of an exported graph remembers."""

    sym_sizes: tuple[Any, ...]
    sym_strides: tuple[Any, ...]

    def sizes(self) -> Any:
        return Sizes(self.sym_sizes)


class NotingFake(_Answers):
    """A fake tensor of a program that runs: its sizes write down how they are used."""

    def item(self) -> Any:
        """The number, which only its value says."""
        mode: Any = self.fake_mode
        mode.number, mode.asks = None, True
        try:
            value = super().item()
        finally:
            mode.asks = False
        return value if mode.number is None else mode.number

    def __bool__(self) -> bool:
        if self.numel() != 1:
            return super().__bool__()
        value = self.item()
        return bool(value if isinstance(value, SizeBool) else value != 0)

    def tolist(self) -> Any:
        """Its numbers, in lists."""
        return [row.tolist() for row in self.unbind(0)] if self.dim() > 0 else self.item()

    def sizes(self) -> Any:
        log = self.fake_mode.log  # type: ignore[attr-defined]
        return Sizes(SizeInt(n, None, log) for n in _SHAPE.__get__(self))


class NotingMode(FakeTensorMode):
    """A mode whose tensors write down how their sizes are used.

    Args:
        log: where.
    """

    kind = NotingFake
    whole = frozenset(
        (
            rushlight.ops.aten.repeat_interleave.self_Tensor,
            rushlight.ops.aten.repeat_interleave.Tensor,
        )
    )

    def __init__(self, log: Log) -> None:
        super().__init__(allow_non_fake_inputs=True, export=True)
        self.log = log
        self.number: Any = None  # the last that only a value says
        self.asks = False  # whether the program asks for it by `item`

    def unknown_number(self, func: Any, tensor: Any) -> Any:
        whole = not (tensor.dtype.is_floating_point or tensor.dtype == _C.bool)
        if tensor.dtype.is_complex or not (whole or self.asks):
            return super().unknown_number(func, tensor)
        unknowns = self.log.unknowns
        if tensor.dtype.is_floating_point:
            self.number = unknowns.new_float(self.log)
        elif tensor.dtype == _C.bool:
            self.number = unknowns.new_bool(self.log)
        else:
            self.number = self._unknown(-math.inf, math.inf)
        return _plain(self.number)

    def _unknown(self, lower: float, upper: float) -> SizeInt:
        return self.log.unknowns.new(lower, upper, self.log)

    def of_unknown_size(self, func: Any, args: Any, kwargs: Any) -> Any:
        make = _OF_UNKNOWN_SIZE.get(func)
        return NotImplemented if make is None else make(self._unknown, *args, **kwargs)


# ---- ops whose results have sizes that depend on values, on meta ----


def _count(unknown: Any, most: float) -> int:
    return int(unknown(0, most))


def _nonzero(unknown: Any, x: Any) -> Any:
    n = _count(unknown, x.numel())
    return rushlight.empty_strided((n, x.dim()), (1, n), dtype=rushlight.int64, device="meta")


def _masked_select(unknown: Any, x: Any, mask: Any) -> Any:
    most = math.prod(rushlight.broadcast_shapes(x.shape, mask.shape))
    return x.new_empty(_count(unknown, most))


def _repeat(unknown: Any, x: Any, repeats: Any, dim: Any = None, *, output_size: Any = None) -> Any:
    x, dim = (x.flatten(), 0) if dim is None else (x, dim % x.dim())
    n = _count(unknown, math.inf) if output_size is None else output_size
    return x.new_empty((*x.shape[:dim], n, *x.shape[dim + 1 :]))


def _places(unknown: Any, repeats: Any, *, output_size: Any = None) -> Any:
    return _repeat(unknown, repeats.new_empty(repeats.shape, dtype=rushlight.int64), repeats, 0)


def _unique(
    unknown: Any, x: Any, sorted: bool = True, inverse: bool = False, counts: bool = False
) -> Any:
    n, none = _count(unknown, x.numel()), x.new_empty(0, dtype=rushlight.int64)
    places = none.new_empty(x.shape) if inverse else none
    return x.new_empty(n), places, none.new_empty(n) if counts else none


def _unique_slices(
    unknown: Any,
    x: Any,
    dim: int,
    sorted: bool = True,
    inverse: bool = False,
    counts: bool = False,
) -> Any:
    dim %= x.dim()
    n, none = _count(unknown, x.shape[dim]), x.new_empty(0, dtype=rushlight.int64)
    places = none.new_empty(x.shape[dim]) if inverse else none
    found = x.new_empty((*x.shape[:dim], n, *x.shape[dim + 1 :]))
    return found, places, none.new_empty(n) if counts else none


def _unique_runs(
    unknown: Any, x: Any, inverse: bool = False, counts: bool = False, dim: int | None = None
) -> Any:
    if dim is None:
        return _unique(unknown, x, True, inverse, counts)
    return _unique_slices(unknown, x, dim, True, inverse, counts)


def _index(unknown: Any, x: Any, indices: Any) -> Any:
    if not any(i is not None and i.dtype == rushlight.bool for i in indices):
        return NotImplemented
    found: list[Any] = []
    for index in indices:
        if index is not None and index.dtype == rushlight.bool:
            n = _count(unknown, index.numel())
            found += [rushlight.zeros(n, dtype=rushlight.int64, device="meta")] * index.dim()
        else:
            found.append(index)
    return rushlight.ops.aten.index.Tensor(x, found)


_OF_UNKNOWN_SIZE: dict[Any, Any] = {
    rushlight.ops.aten.nonzero.default: _nonzero,
    rushlight.ops.aten.masked_select.default: _masked_select,
    rushlight.ops.aten.repeat_interleave.self_Tensor: _repeat,
    rushlight.ops.aten.repeat_interleave.Tensor: _places,
    rushlight.ops.aten.index.Tensor: _index,
    rushlight.ops.aten._unique2.default: _unique,
    rushlight.ops.aten.unique_dim.default: _unique_slices,
    rushlight.ops.aten.unique_consecutive.default: _unique_runs,
}
