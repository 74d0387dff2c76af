"""`NestedTensor`: the jagged layout, components of any length in one tensor of values.

Component `i` is the part of the values between `offsets[i]` and `offsets[i + 1]` along the ragged
dimension; where there are lengths, it has so many elements and the rest is a hole. A nested tensor
stands for its values in programs and in the graph of gradients and has no memory of its own. A call
(`__torch_function__`) takes the values out, computes with plain tensors and wraps the result; both
steps are recorded, so gradients are those of the plain ops. What reaches `__torch_dispatch__` acts
on each element: in-place ops, the engine's sums, what composites are made of, and `ops.aten`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor, _tensor
from rushlight.autograd import Function
from rushlight.nested._handlers import HandlesCalls
from rushlight.nested._sizes import NestedInt, get_tensor_symint

if TYPE_CHECKING:
    from rushlight.autograd.function import BackwardCFunction

__all__ = ["NestedTensor"]


def _cache_entry(cache, name):
    number = cache.get(name)
    return number.shape[0] if isinstance(number, Tensor) else number


def _load_val_from_tensor(t):
    return t.shape[0]


def _store_val_in_tensor(value: int) -> Tensor:
    return rushlight.empty(value, 0)


def _make(values, offsets, lengths=None, ragged_idx=1, cache=None, requires_grad=False):
    """Around these tensors themselves; nothing is recorded."""
    made = Tensor._make_wrapper_subclass(
        NestedTensor,
        (offsets.shape[0] - 1, *values.shape),
        dtype=values.dtype,
        layout=rushlight.jagged,
        device=values.device,
        requires_grad=requires_grad,
    )
    made._values = values.detach() if values.requires_grad else values
    made._root = None
    made._offsets, made._lengths = offsets, lengths
    made._ragged_idx = ragged_idx
    made._metadata_cache = {} if cache is None else cache
    return made


class _Values(Function):
    """The values of a nested tensor."""

    @staticmethod
    def forward(ctx, t):
        ctx.about = t._about()
        return t._values.view_as(t._values)

    @staticmethod
    def backward(ctx: BackwardCFunction, grad: Tensor) -> Tensor:
        return _Wrap.apply(grad, *ctx.about)


class _Wrap(Function):
    """The nested tensor of values."""

    @staticmethod
    def forward(ctx, values, offsets, lengths, ragged_idx, cache):
        ctx.others = (None,) * 4
        return _make(values.detach(), offsets, lengths, ragged_idx, cache)

    @staticmethod
    def backward(ctx, grad):
        return values_of(grad), *ctx.others


def values_of(t):
    """The values, recorded."""
    if t.requires_grad and rushlight.is_grad_enabled():
        return _Values.apply(t)
    return t._values


def wrap(values, offsets, lengths=None, ragged_idx: int = 1, cache=None):
    """A nested tensor of these values, recorded."""
    if values.requires_grad and rushlight.is_grad_enabled():
        return _Wrap.apply(values, offsets, lengths, ragged_idx, cache)
    return _make(values, offsets, lengths, ragged_idx, cache)


class NestedTensor(HandlesCalls, Tensor):
    """Tensors that differ in the size of one dimension, under one name.

    Shapes show a symbol for the ragged size: tensors made from the same `offsets` have the same and
    go together in ops, others do not. `rushlight.nested` has the functions that make one.
    """

    _values: Tensor
    _offsets: Tensor
    _lengths: Tensor | None
    _ragged_idx: int
    _metadata_cache: dict[str, Any]
    _root: Tensor | None

    @staticmethod
    def __new__(cls, values, offsets, *, lengths=None, **kwargs):
        if not isinstance(values, Tensor) or not isinstance(offsets, Tensor):
            raise TypeError("NestedTensor(): values and offsets must be tensors")
        ragged_idx = kwargs.get("_ragged_idx", 1)
        _check(values, offsets, lengths, ragged_idx)
        return _make(
            values.detach(),
            offsets,
            lengths,
            ragged_idx,
            dict(kwargs.get("_metadata_cache") or {}),
            kwargs.get("requires_grad", False),
        )

    @property
    def _base(self) -> Tensor | None:
        """The tensor whose memory it is a view of, or None."""
        return self._root

    def _about(self):
        return self._offsets, self._lengths, self._ragged_idx, self._metadata_cache

    def _with_values(self, values, ragged_idx=None):
        """Other values, cut in the same places."""
        offsets, lengths, old, cache = self._about()
        return wrap(values, offsets, lengths, old if ragged_idx is None else ragged_idx, cache)

    def values(self) -> Tensor:
        """The values of all components in one tensor; gradients pass."""
        return values_of(self)

    def offsets(self) -> Tensor:
        """Where along the values each component begins, and the last one ends."""
        return self._offsets

    def lengths(self) -> Tensor | None:
        """How long components are, where they do not reach to the next one; else None."""
        return self._lengths

    def _seq_lengths(self) -> Tensor:
        return self._offsets.diff() if self._lengths is None else self._lengths

    def _nested_size(self) -> rushlight.Size:
        sizes: list[Any] = list(self._values.shape)
        source = self._offsets if self._lengths is None else self._lengths
        sizes[self._ragged_idx - 1] = get_tensor_symint(source)
        return rushlight.Size((self._offsets.shape[0] - 1, *sizes))

    def _nested_strides(self):
        strides = self._values.stride()
        ragged = self._ragged_idx - 1
        symbol = self._nested_size()[self._ragged_idx]
        outer = [
            s * symbol if i != ragged and s > strides[ragged] else s for i, s in enumerate(strides)
        ]
        if all(s <= strides[ragged] for s in strides):
            return (strides[ragged] * symbol, *strides)
        largest = max(range(len(strides)), key=lambda i: strides[i])
        return (strides[ragged] * self._values.shape[largest] * symbol, *outer)

    def _extreme(self, name: str, reduce: Callable[..., Any]) -> int:
        known = _cache_entry(self._metadata_cache, name)
        if known is None:
            lengths = self._seq_lengths()
            known = int(reduce(lengths)) if lengths.numel() else 0
            self._metadata_cache[name] = _store_val_in_tensor(known)
        return known

    def _get_max_seqlen(self) -> int:
        return self._extreme("max_seqlen", rushlight.max)

    def _get_min_seqlen(self) -> int:
        return self._extreme("min_seqlen", rushlight.min)

    @property
    def _max_seqlen(self) -> int:
        return self._get_max_seqlen()

    @property
    def _min_seqlen(self) -> int:
        return self._get_min_seqlen()

    @property
    def _maybe_max_seqlen(self) -> int | None:
        return _cache_entry(self._metadata_cache, "max_seqlen")

    @property
    def _maybe_min_seqlen(self) -> int | None:
        return _cache_entry(self._metadata_cache, "min_seqlen")

    def __repr__(self, *, tensor_contents=None) -> str:
        grad = ""
        if self.grad_fn is not None:
            grad = f", grad_fn={self.grad_fn}"
        elif self.requires_grad:
            grad = ", requires_grad=True"
        return (
            f"NestedTensor(size={tuple(self.shape)}, offsets={self._offsets}{grad}, "
            f"contiguous={self.is_contiguous()})"
        )

    __str__ = __repr__

    def __format__(self, spec) -> str:
        return format(repr(self), spec)

    def __iter__(self):
        # A mode that answers with a nested tensor is refused, not asked once more.
        return tuple.__iter__(self.unbind())

    def __hash__(self) -> int:
        return id(self)

    def __reduce_ex__(self, protocol):
        parts = {
            "values": self._values,
            "offsets": self._offsets,
            "lengths": self._lengths,
            "_ragged_idx": self._ragged_idx,
            "_metadata_cache": self._metadata_cache,
            "requires_grad": self.requires_grad,
        }
        state = {
            "_ragged_idx": self._ragged_idx,
            "_values": self._values,
            "_offsets": self._offsets,
            "_lengths": self._lengths,
            "_metadata_cache": self._metadata_cache,
        }
        function = _tensor._rebuild_from_type_v2
        return function, (_rebuild_njt, type(self), (parts,), state)

    def __setstate__(self, state):
        known = {"_values", "_offsets", "_lengths", "_ragged_idx", "_metadata_cache"}
        for name, value in state.items():  # what it is made of, the constructor has had
            if name not in known and not name.startswith("_dynamo"):
                setattr(self, name, value)

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user can be deep copied, not results that "
                "autograd recorded; copy a detach() of it"
            )
        if id(self) in memo:
            return memo[id(self)]
        from copy import deepcopy

        copied = _make(
            deepcopy(self._values, memo),
            deepcopy(self._offsets, memo),
            deepcopy(self._lengths, memo),
            self._ragged_idx,
            dict(self._metadata_cache),
            self.requires_grad,
        )
        if self.grad is not None:
            copied.grad = deepcopy(self.grad, memo)
        memo[id(self)] = copied
        return copied


def _check(values, offsets, lengths, ragged_idx):
    if any(isinstance(t, Tensor) and t.is_nested for t in (values, offsets, lengths)):
        raise ValueError(
            "nested tensors are made of plain tensors: expected values, offsets and lengths "
            "that are not nested"
        )
    if offsets.dim() != 1 or offsets.shape[0] < 1 or offsets.dtype not in _INDEX:
        raise RuntimeError(
            "expected offsets to be a 1-D tensor of integers with at least 1 of them"
        )
    if not 1 <= ragged_idx <= values.dim():
        raise RuntimeError(
            f"the ragged dimension must be in [1, {values.dim()}] for values of {values.dim()} "
            f"dimensions, but got {ragged_idx}"
        )
    if lengths is not None and (
        lengths.dim() != 1
        or lengths.shape[0] != offsets.shape[0] - 1
        or lengths.dtype not in _INDEX
    ):
        raise RuntimeError("expected lengths to be a 1-D tensor, one number fewer than offsets")
    if any(t.device != values.device for t in (offsets, lengths) if t is not None):
        raise RuntimeError("expected values, offsets and lengths to be on the same device")


_INDEX = (rushlight.int64, rushlight.int32)


def _viewing(t: Tensor, values: Tensor) -> Tensor:
    """Remembers whose memory a nested tensor is a view of."""
    t._root = values if values._base is None else values._base
    return t


class _DimRange:
    """What PyTorch's files have beside the longest length; it says nothing here."""


def _rebuild_njt(constructor_kwargs):
    return NestedTensor(**constructor_kwargs)


def jagged_from_list(tensors, offsets, dtype=None, device=None):
    """A jagged nested tensor of a list, recorded, and its offsets (those given, where given)."""
    tensors = list(tensors)
    if len(tensors) == 0:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what in ("dtype", "device", "dim"):
        first, *others = (t.dim() if what == "dim" else getattr(t, what) for t in tensors)
        if any(other != first for other in others):
            raise RuntimeError(
                f"nested tensor: all tensors in list must have the same {what}, but there are "
                f"{first} and {next(x for x in others if x != first)}"
            )
    if tensors[0].dim() == 0:
        raise RuntimeError("parts need a dimension: this is a list of zero-dim tensors")
    shapes = [t.shape for t in tensors]
    ragged = [i for i, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1] or [0]
    if len(ragged) > 1:
        raise RuntimeError(
            "the jagged layout only allows for a single ragged dimension, but sizes differ in "
            f"{len(ragged)} dimensions of {shapes}; the strided layout takes such a list"
        )
    dim = ragged[0]
    values = rushlight.cat(tensors, dim).to(device=device, dtype=dtype)
    sizes = [s[dim] for s in shapes]
    if offsets is None:
        offsets = rushlight.zeros(len(sizes) + 1, dtype=rushlight.int64)
        rushlight.cumsum(rushlight.tensor(sizes), 0, out=offsets[1:])
        offsets = offsets.to(values.device)
    cache = {
        "min_seqlen": _store_val_in_tensor(min(sizes)),
        "max_seqlen": _store_val_in_tensor(max(sizes)),
    }
    return _viewing(wrap(values, offsets, None, dim + 1, cache), values), offsets


def jagged_from_tensor_and_lengths(tensor, starts, lengths):
    """Windows of the rows of a tensor (B, L, …), recorded; their offsets, their lengths or None."""
    rows, width = tensor.shape[:2]
    kwargs = {"dtype": rushlight.int64, "device": tensor.device}

    def each(what, name):
        if isinstance(what, int):
            return rushlight.full((rows,), what, **kwargs)
        if what.dim() != 1 or what.shape[0] != rows:
            raise RuntimeError(
                f"When constructing a jagged nested tensor using narrow(), {name} must have one "
                f"number for each of the {rows} rows, but has the shape {tuple(what.shape)}"
            )
        return what.to(**kwargs)

    starts, lengths = each(starts, "start"), each(lengths, "length")
    if rows and bool(((starts < 0) | (lengths < 0) | (starts + lengths > width)).any()):
        raise RuntimeError(f"narrow(): start and length leave the dimension of size {width}")
    values = tensor.flatten(0, 1)
    offsets = rushlight.arange(rows, **kwargs) * width + starts
    last = offsets[-1:] + lengths[-1:] if rows else rushlight.zeros(1, **kwargs)
    offsets = rushlight.cat([offsets, last])
    small = {name: int(f(lengths)) for name, f in _EXTREMES.items()} if rows else {}
    cache = {name: _store_val_in_tensor(number) for name, number in small.items()}
    if bool((offsets.diff() == lengths).all()):  # nothing between them
        first, end = (int(offsets[0]), int(offsets[-1])) if rows else (0, 0)
        if first == 0 and end == values.shape[0]:
            return _viewing(wrap(values, offsets, None, 1, cache), values), offsets, None
        offsets = offsets - first
        values = values[first:end]
        return _viewing(wrap(values, offsets, None, 1, cache), values), offsets, None
    return _viewing(wrap(values, offsets, lengths, 1, cache), values), offsets, lengths


_EXTREMES = {"min_seqlen": rushlight.min, "max_seqlen": rushlight.max}


def _cache(min_seqlen, max_seqlen):
    given = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    return {name: _store_val_in_tensor(n) for name, n in given.items() if n is not None}


def nested_view_from_values_offsets(
    values, offsets, ragged_idx: int = 1, min_seqlen=None, max_seqlen=None
):
    """The nested tensor on the memory of `values`, recorded."""
    _check(values, offsets, None, ragged_idx)
    cache = _cache(min_seqlen, max_seqlen)
    return _viewing(wrap(values, offsets, None, ragged_idx, cache), values)


def nested_view_from_values_offsets_lengths(
    values, offsets, lengths, ragged_idx: int = 1, min_seqlen=None, max_seqlen=None
):
    """The nested tensor with holes on the memory of `values`, recorded."""
    _check(values, offsets, lengths, ragged_idx)
    cache = _cache(min_seqlen, max_seqlen)
    return _viewing(wrap(values, offsets, lengths, ragged_idx, cache), values)


def buffer_from_jagged(jagged):
    """The values, recorded."""
    return values_of(jagged)


class ViewBufferFromNested(_Values):
    """The values of a nested tensor as a step of its own."""


class ViewNestedFromBuffer(Function):
    """The nested tensor of values and offsets as a step of its own."""

    @staticmethod
    def forward(ctx, values, offsets, metadata_cache=None):
        ctx.others = (None,) * 2
        return _make(values.detach(), offsets, None, 1, dict(metadata_cache or {}))

    @staticmethod
    def backward(ctx, grad):
        return values_of(grad), *ctx.others


def nested_from_padded(padded, offsets, ragged_idx: int = 1, min_seqlen=None, max_seqlen=None):
    """The elements of a padded tensor that offsets keep, as a jagged nested tensor."""
    from rushlight.nested._padding import from_padded

    cache = _cache(min_seqlen, max_seqlen)
    if int(offsets[-1]) == 0:
        rows = padded.movedim(ragged_idx, 1).flatten(0, 1)[:0].movedim(0, ragged_idx - 1)
        return wrap(rows, offsets, None, ragged_idx, cache)
    values = from_padded(padded, offsets, int(offsets[-1]), ragged_idx)
    return wrap(values, offsets, None, ragged_idx, cache)


__all__ += ["NestedInt"]
