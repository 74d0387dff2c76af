"""Nested tensors of the strided layout: components of any sizes in one buffer.

A component is a window of the buffer (sizes, strides, offset), so views of components are views of
the buffer. A call computes with the buffer, or with the windows, and wraps what comes out; both
steps are recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import rushlight
from rushlight import Tensor
from rushlight.autograd import Function
from rushlight.nested._handlers import HandlesCalls

if TYPE_CHECKING:
    from rushlight.autograd.function import BackwardCFunction

__all__: list[str] = []


class Windows(NamedTuple):
    """Where the components lie in the buffer."""

    shapes: tuple
    strides: tuple
    starts: tuple
    dim: int  # of the nested tensor

    def largest(self) -> tuple[int, ...]:
        """The largest size of the components in each of their dimensions."""
        return tuple(max((s[i] for s in self.shapes), default=0) for i in range(self.dim - 1))

    def packed(self) -> bool:
        """Whether they fill a buffer one behind the other."""
        return self == packed(self.shapes, self.dim)


def packed(shapes: Sequence[tuple[int, ...]], dim: int) -> Windows:
    """The windows of contiguous components, one behind the other."""
    shapes = tuple(map(tuple, shapes))
    counts = [math.prod(s) for s in shapes]
    starts = tuple(sum(counts[:i]) for i in range(len(counts)))
    strides = tuple(tuple(math.prod(s[i + 1 :]) for i in range(len(s))) for s in shapes)
    return Windows(shapes, strides, starts, dim)


def _make(buffer: Tensor, windows: Windows, requires_grad: bool = False) -> Tensor:
    made = Tensor._make_wrapper_subclass(
        StridedNestedTensor,
        (len(windows.shapes), *windows.largest()),
        dtype=buffer.dtype,
        device=buffer.device,
        requires_grad=requires_grad,
    )
    made._buffer = buffer.detach() if buffer.requires_grad else buffer
    made._windows = windows
    made._root = None
    return made


class _Buffer(Function):
    """The buffer of a nested tensor."""

    @staticmethod
    def forward(ctx, t):
        ctx.windows = t._windows
        return t._buffer.view_as(t._buffer)

    @staticmethod
    def backward(ctx: BackwardCFunction, grad: Tensor) -> Tensor:
        return _Wrap.apply(grad, ctx.windows)


class _Wrap(Function):
    """The nested tensor of windows on a buffer."""

    @staticmethod
    def forward(ctx, buffer, windows):
        ctx.windows, ctx.count = windows, buffer.shape[0]
        return _make(buffer.detach(), windows)

    @staticmethod
    def backward(ctx, grad):
        if grad._windows == ctx.windows and grad._buffer.shape[0] == ctx.count:
            return buffer_of(grad), None
        out = rushlight.zeros(ctx.count, dtype=grad.dtype, device=grad.device)
        for part, *window in zip(components(grad), *ctx.windows[:3], strict=True):
            out = out.as_strided_scatter(part, *window)
        return out, None


def buffer_of(t: Tensor) -> Tensor:
    """The buffer, recorded."""
    if t.requires_grad and rushlight.is_grad_enabled():
        return _Buffer.apply(t)
    return t._buffer


def wrap(buffer: Tensor, windows: Windows) -> Tensor:
    """A nested tensor of windows on a buffer, recorded."""
    if buffer.requires_grad and rushlight.is_grad_enabled():
        return _Wrap.apply(buffer, windows)
    return _make(buffer, windows)


def components(t: Tensor) -> list[Tensor]:
    """The components as views of the buffer, recorded."""
    buffer = buffer_of(t)
    return [buffer.as_strided(*window) for window in zip(*t._windows[:3], strict=True)]


def of_components(parts, dim=None):
    """A nested tensor with these components in a buffer of its own, recorded."""
    parts = list(parts)
    dim = (parts[0].dim() + 1 if parts else 1) if dim is None else dim
    buffer = rushlight.cat([p.reshape(-1) for p in parts]) if parts else rushlight.empty(0)
    return wrap(buffer, packed([p.shape for p in parts], dim))


def of_list(parts, dtype=None, device=None):
    """The strided nested tensor of a list, recorded."""
    for i, part in enumerate(parts):
        if part.dim() != parts[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{part.dim()} for Tensor at index {i} and dimension {parts[0].dim()} for Tensor "
                "at index 0."
            )
    if parts:
        dtype = parts[0].dtype if dtype is None else dtype
        device = parts[0].device if device is None else device
        return of_components([p.to(device=device, dtype=dtype) for p in parts])
    return _make(rushlight.empty(0, dtype=dtype, device=device), packed([], 1))


def of_slices(t):
    """The strided nested tensor of the slices of a tensor, on its memory where it is contiguous."""
    buffer = t.reshape(-1)
    made = wrap(buffer, packed([t.shape[1:]] * t.shape[0], t.dim()))
    if t.is_contiguous():
        made._root = t if t._base is None else t._base
    return made


class StridedNestedTensor(HandlesCalls, Tensor):
    """Tensors of the same number of dimensions and any sizes, under one name.

    `rushlight.nested.nested_tensor` makes one.
    """

    _buffer: Tensor
    _windows: Windows
    _root: Tensor | None

    @property
    def _base(self) -> Tensor | None:
        """The tensor whose memory it is a view of, or None."""
        return self._root

    def values(self) -> Tensor:
        """The elements of all components in one tensor of one dimension; gradients pass."""
        return buffer_of(self)

    def _nested_tensor_size(self) -> Tensor:
        return self._table(self._windows.shapes)

    def _nested_tensor_strides(self) -> Tensor:
        return self._table(self._windows.strides)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        return rushlight.tensor(self._windows.starts, dtype=rushlight.int64)

    def _table(self, rows: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]) -> Tensor:
        if not rows or self._windows.dim == 1:
            return rushlight.empty(len(rows), 0, dtype=rushlight.int64) if rows else _NOTHING
        return rushlight.tensor(rows, dtype=rushlight.int64)

    def __repr__(self, *, tensor_contents=None) -> str:
        parts = [
            "\n".join("  " + line for line in str(p).split("\n")) for p in components(self.detach())
        ]
        about = ""
        if self.grad_fn is not None:
            about = f", grad_fn=<{type(self.grad_fn).__name__}>"
        elif self.requires_grad:
            about = ", requires_grad=True"
        return "nested_tensor([\n" + ",\n".join(parts) + "\n]" + about + ")"

    __str__ = __repr__

    def __format__(self, spec) -> str:
        return format(repr(self), spec)

    def __iter__(self):
        return iter(components(self))

    def __hash__(self) -> int:
        return id(self)

    def __reduce_ex__(
        self, protocol: int
    ) -> tuple[Callable[..., Any], tuple[Tensor, Tensor, Tensor, Tensor]]:
        parts = (
            self._buffer,
            self._nested_tensor_size(),
            self._nested_tensor_strides(),
            self._nested_tensor_storage_offsets(),
        )
        return rushlight._utils._rebuild_nested_tensor, parts

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user can be deep copied, not results that "
                "autograd recorded; copy a detach() of it"
            )
        if id(self) not in memo:
            copied = _make(self._buffer.clone(), self._windows, self.requires_grad)
            memo[id(self)] = copied
            if self.grad is not None:
                from copy import deepcopy

                copied.grad = deepcopy(self.grad, memo)
        return memo[id(self)]


_NOTHING = rushlight.empty(0, dtype=rushlight.int64)


def of_tables(buffer: Tensor, sizes: Tensor, strides: Tensor, starts: Tensor) -> Tensor:
    """The nested tensor of a buffer and tables of its windows, each checked against the buffer."""
    if buffer.dim() != 1 or not sizes.shape == strides.shape or starts.shape[:1] != sizes.shape[:1]:
        raise RuntimeError("a nested tensor has a buffer of 1 dimension and tables of equal length")
    dims, rows = 1, ((), ())
    if sizes.dim() == 2:
        dims, rows = sizes.shape[1] + 1, [tuple(map(tuple, t.tolist())) for t in (sizes, strides)]
    windows = Windows(rows[0], rows[1], tuple(starts.tolist()), dims)
    for size, stride, start in zip(*windows[:3], strict=True):
        buffer.as_strided(size, stride, start)  # refuses what leaves the buffer
    return _make(buffer, windows)
