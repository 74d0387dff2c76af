"""The rules of strided nested tensors: elements by the table's kind, copies, components, shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor
from rushlight._checks import wrap_dim
from rushlight._rules import Rules
from rushlight.nested._strided import (
    Windows,
    _make,
    buffer_of,
    components,
    of_components,
    packed,
    wrap,
)

if TYPE_CHECKING:
    from rushlight._ops import OpOverload

__all__ = [
    "RULES",
    "SAFE",
    "attribute",
    "elementwise",
    "in_place",
    "memory",
    "same_places",
]

RULES = Rules()
rule = RULES.rule
SAFE = {"new_empty_strided", "clone", "detach", "alias", "_to_copy"}


def memory(t: Tensor) -> Tensor:
    """The tensor that holds the elements."""
    return t._buffer


def same_places(func: OpOverload, tensors: list[Tensor]) -> None:
    """Refuses tensors whose elements do not lie at the same places."""
    if not _have_equal_windows(tensors):
        raise RuntimeError(f"{func}: expected nested tensors that lie in memory in the same way")


def _wrap_dim(t, dim):
    return wrap_dim(dim, t._windows.dim)


def each(f: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """A nested tensor of what a function makes of components, one for each."""
    rows = [components(t) for t in tensors]
    return of_components([f(*row) for row in zip(*rows, strict=True)], tensors[0]._windows.dim)


def _each(f: Callable[..., Any], t: Tensor) -> Tensor:
    made = [f(part) for part in components(t)]
    return of_components(made) if made else t


# ---- elements ----


def _common(name, args):
    nested = [a for a in args if isinstance(a, Tensor) and a.is_nested]
    first = nested[0]
    for a in args:
        if isinstance(a, Tensor) and not a.is_nested and a.dim() != 0:
            sides = ("nested", "non-nested") if args[0] is first else ("non-nested", "nested")
            raise RuntimeError(
                "Expected both self and other to be nested, but got a "
                f"{sides[0]} self and {sides[1]} other"
            )
    for t in nested[1:]:
        if t._windows.shapes != first._windows.shapes or t._windows.dim != first._windows.dim:
            raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
    return nested


def _flatten(value):
    if isinstance(value, Tensor):
        return buffer_of(value) if value.is_nested else value.reshape(())
    return value


def _have_equal_windows(nested: list[Tensor]) -> bool:
    windows = nested[0]._windows
    size = nested[0]._buffer.shape
    filled = size[0] == sum(map(math.prod, windows.shapes))
    return filled and all(t._windows == windows and t._buffer.shape == size for t in nested)


def elementwise(func, args, kwargs):
    """An op of elements, of one tensor or several of the same sizes."""
    name = func.__name__.split(".")[0]
    nested = _common(name, [*args, *kwargs.values()])
    if isinstance(kwargs.get("out"), Tensor):
        raise NotImplementedError(f"{name}(): nested tensors have no out= form")
    if not _have_equal_windows(nested):
        contiguous = {id(t): _pack(t) for t in nested}
        args = [contiguous.get(id(a), a) for a in args]
        kwargs = {k: contiguous.get(id(v), v) for k, v in kwargs.items()}
        nested = list(contiguous.values())
    made = func(*map(_flatten, args), **{k: _flatten(v) for k, v in kwargs.items()})
    windows = nested[0]._windows
    if isinstance(made, Tensor):
        return wrap(made, windows)
    return type(made)([wrap(t, windows) for t in made])


def _pack(t: Tensor) -> Tensor:
    return t if t._windows.packed() else of_components(components(t), t._windows.dim)


def in_place(func, name, args, kwargs):
    """An op that writes into its first argument."""
    target = args[0]
    if not target.is_nested:
        raise RuntimeError(f"{name}(): cannot write a nested tensor into one that is not nested")
    if name == "copy_" and not args[1].is_nested:
        raise RuntimeError("copy_ only supports Nested Tensors that have same size")
    if name == "fill_" and isinstance(args[1], Tensor) and args[1].dim() != 0:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor, and this one has {args[1].dim()} "
            "dimensions"
        )
    nested = _common(name, [*args, *kwargs.values()])
    with rushlight.no_grad():
        if _have_equal_windows(nested):
            func(*map(_flatten, args), **{k: _flatten(v) for k, v in kwargs.items()})
            return target
        rows = [components(a) if any(a is t for t in nested) else None for a in args]
        for i, part in enumerate(components(target)):
            rest = [a if r is None else r[i] for a, r in zip(args[1:], rows[1:], strict=True)]
            func(part, *rest, **kwargs)
    return target


def _refuse(name):
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend: strided "
        "nested tensors have no rule for it"
    )


def attribute(name, t):
    """An attribute that nested tensors answer themselves; NotImplemented for others."""
    if name == "shape":
        return _size(None, t)
    if name in ("mT", "mH"):
        return RULES["transpose"](None, t, -2, -1)
    if name == "nbytes":
        return t.numel() * t.itemsize
    return NotImplemented


# ---- questions ----


@rule("size sym_size")
def _size(func, t, dim=None):
    if dim is None:
        raise RuntimeError(
            "Internal error: NestedTensorImpl doesn't support sizes: components differ in them. "
            "size(dim) tells one that all have."
        )
    dim = _wrap_dim(t, dim)
    shapes = t._windows.shapes
    if dim == 0:
        return len(shapes)
    found = {s[dim - 1] for s in shapes}
    if len(found) != 1:
        raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
    return found.pop()


@rule("stride")
def _stride(func, t, dim=None):
    raise RuntimeError(
        "Internal error: NestedTensorImpl doesn't support strides: components differ"
    )


@rule("numel")
def _numel(func, t):
    return sum(map(math.prod, t._windows.shapes))


@rule("is_contiguous")
def _is_contiguous(func, t, memory_format=rushlight.contiguous_format):
    return t._windows.packed()


@rule("is_same_size")
def _is_same_size(func: Callable[..., Any], t: Tensor, other: Tensor) -> bool:
    both = t.is_nested and other.is_nested
    return both and t._windows.shapes == other._windows.shapes


@rule("equal allclose")
def _compare(func, t, other, *args, **kwargs):
    if not (isinstance(other, Tensor) and other.is_nested):
        return False
    if t._windows.shapes != other._windows.shapes:
        return False
    return func(_pack(t)._buffer, _pack(other)._buffer, *args, **kwargs)


@rule("tolist numpy __array__ __dlpack__ item __bool__")
def _refuse_call(func, t, *args, **kwargs):
    raise RuntimeError(f"{func.__name__}(): a nested tensor has no such form; unbind() it first")


# ---- copies, conversions, factories ----


@rule("clone")
def _clone(func, t, memory_format=rushlight.preserve_format):
    if memory_format not in (rushlight.contiguous_format, rushlight.preserve_format):
        name = "".join(w.capitalize() for w in str(memory_format)[6:].split("_"))
        raise RuntimeError(
            f"clone of a nested tensor with memory format: {name}; Preserve and Contiguous memory "
            "formats are the ones it has"
        )
    if memory_format == rushlight.contiguous_format:
        return of_components(components(t), t._windows.dim)
    return wrap(buffer_of(t).clone(), t._windows)


@rule("detach alias")
def _detach(func, t):
    return _make(t._buffer.detach(), t._windows)


@rule("contiguous")
def _contiguous(func, t, memory_format=rushlight.contiguous_format):
    return _pack(t)


@rule(
    "to _to_copy double float half bfloat16 long int short char byte bool type cpu cuda pin_memory"
)
def _convert(func, t, *args, **kwargs):
    args = [a._buffer if isinstance(a, Tensor) and a.is_nested else a for a in args]
    kwargs = {k: v for k, v in kwargs.items() if k != "layout"}
    before = buffer_of(t)
    buffer = func(before, *args, **kwargs)
    if not isinstance(buffer, Tensor) or buffer is before:
        return t if buffer is before else buffer
    return wrap(buffer, t._windows)


@rule("zeros_like ones_like empty_like full_like rand_like randn_like randint_like bernoulli")
def _empty_like(func, t, *args, **kwargs):
    kwargs = {k: v for k, v in kwargs.items() if k != "layout"}
    t = _pack(t)
    return wrap(func(t._buffer, *args, **kwargs), t._windows)


@rule("new_empty_strided")
def _new_empty_strided(func, t, size, stride, **kwargs):
    whole = (len(t._windows.shapes), *t._windows.largest())
    if tuple(size) != whole:
        return func(t._buffer, size, stride, **kwargs)
    return wrap(rushlight.empty_like(t._buffer, **kwargs), t._windows)


@rule("new_empty new_zeros new_ones new_full new_tensor")
def _new(func, t, *args, **kwargs):
    return func(t._buffer, *args, **kwargs)


@rule("dropout alpha_dropout native_dropout _dropout_noise")
def _dropout(func, t, *args, **kwargs):
    t = _pack(t)
    return wrap(func(buffer_of(t), *args, **kwargs), t._windows)


@rule("dropout_")
def _dropout_(func, t, *args, **kwargs):
    func(t._buffer, *args, **kwargs)
    return t


@rule("embedding")
def _embedding(func, t, weight, *args, **kwargs):
    if not t.is_nested or weight.is_nested:
        raise RuntimeError("embedding(): only the indices may be nested")
    t = _pack(t)
    rows = func(buffer_of(t), weight, *args, **kwargs)
    shapes = [(*s, weight.shape[1]) for s in t._windows.shapes]
    return wrap(rows.reshape(-1), packed(shapes, t._windows.dim + 1))


def _too_small(asked, *needed):
    return (
        f"Value in output_size is less than NestedTensor padded size: {tuple(asked)}, where "
        f"{needed} holds all parts"
    )


@rule("to_padded_tensor")
def _to_padded_tensor(func, t, padding, output_size=None):
    shapes = t._windows.shapes
    if _numel(None, t) == 0:
        raise RuntimeError(
            "to_padded_tensor: at least one constituent tensor should have non-zero numel"
        )
    if not t._windows.packed():
        raise RuntimeError("for now to_padded_tensor only supports contiguous nested tensor")
    sizes = [max(column) for column in zip(*shapes, strict=True)]
    if output_size is not None:
        if len(output_size) != t._windows.dim:
            raise RuntimeError(
                f"Length of output_size does not match NestedTensor dims: {len(output_size)} and "
                f"{t._windows.dim}"
            )
        wanted = list(output_size[1:])
        if any(a < b for a, b in zip(wanted, sizes, strict=True)):
            raise RuntimeError(_too_small(output_size, len(shapes), *sizes))
        sizes = wanted
    pad = rushlight.nn.functional.pad
    rows = []
    for part in components(t):
        gaps = [a - b for a, b in zip(sizes, part.shape, strict=True)]
        rows.append(pad(part, [n for gap in reversed(gaps) for n in (0, gap)], value=padding))
    out = rushlight.stack(rows)
    missing = 0 if output_size is None else output_size[0] - out.shape[0]
    if missing < 0:
        raise RuntimeError(_too_small(output_size, *out.shape))
    return pad(out, [0, 0] * (out.dim() - 1) + [0, missing], value=padding) if missing else out


# ---- components ----


@rule("unbind")
def _unbind(func, t, dim=0):
    dim = _wrap_dim(t, dim)
    if dim != 0:
        raise RuntimeError(
            f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead."
        )
    return tuple(components(t))


@rule("select")
def _select(func, t, dim, index):
    dim = _wrap_dim(t, dim)
    if dim == 0:
        count = len(t._windows.shapes)
        if not -count <= index < count:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
        return components(t)[index]
    return _view_components(t, lambda part: part.select(dim - 1, index))


def _view_components(t: Tensor, f: Callable[..., Any]) -> Tensor:
    """The nested tensor of views of the components, on the same buffer."""
    base = rushlight.empty(t._buffer.shape, dtype=rushlight.uint8, device="meta")
    views = [f(base.as_strided(*window)) for window in zip(*t._windows[:3], strict=True)]
    windows = Windows(
        tuple(tuple(v.shape) for v in views),
        tuple(v.stride() for v in views),
        tuple(v.storage_offset() for v in views),
        views[0].dim() + 1 if views else t._windows.dim,
    )
    return wrap(buffer_of(t), windows)


@rule("__getitem__")
def _getitem(func, t, index):
    index = index if isinstance(index, tuple) else (index,)
    if index and isinstance(index[0], int) and not isinstance(index[0], bool):
        first = _select(None, t, 0, index[0])
        return first[index[1:]] if len(index) > 1 else first
    if index == (...,) or index == (slice(None),):
        return _view_components(t, lambda part: part)
    if index and index[0] is not ... and index[0] != slice(None):
        _refuse("slice")
    if any(isinstance(i, (Tensor, list)) for i in index):
        _refuse("index")
    return _view_components(t, lambda part: part[index if index[0] is ... else index[1:]])


@rule("narrow")
def _narrow(func, t, dim, start, length):
    if _wrap_dim(t, dim) != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    if not t._windows.packed():
        raise RuntimeError("narrow(): only contiguous nested tensors supported")
    count = len(t._windows.shapes)
    if not (0 <= start <= count and 0 <= length <= count - start):
        raise RuntimeError(f"narrow(): start ({start}) + length ({length}) exceeds {count}")
    shapes, strides, starts = (row[start : start + length] for row in t._windows[:3])
    return wrap(buffer_of(t), Windows(shapes, strides, starts, t._windows.dim))


@rule("chunk")
def _chunk(func, t, chunks, dim=0):
    last = t._windows.dim - 1
    if _wrap_dim(t, dim) != last:
        raise RuntimeError(f"Chunk for nested tensors cuts the last dimension, {last}, not {dim}")
    if chunks <= 0:
        raise RuntimeError("chunk() requires chunks be greater than 0, got: " + str(chunks))
    if not t._windows.packed():
        raise RuntimeError("chunk expects `self` to be contiguous.")
    width = _size(None, t, last)
    if width % chunks:
        raise RuntimeError(
            f"Chunk for nested tensors needs a trailing dimension divisible by chunks, but {width} "
            f"is not by {chunks}"
        )
    step = width // chunks
    return tuple(
        _view_components(t, lambda p, i=i: p.narrow(-1, i * step, step)) for i in range(chunks)
    )


@rule("split_with_sizes split")
def _split(func, t, split_size, dim=0):
    last = t._windows.dim - 1
    if _wrap_dim(t, dim) != last:
        raise RuntimeError(
            f"split_with_sizes for nested tensors cuts the last dimension, {last}, not {dim}"
        )
    if not t._windows.packed():
        raise RuntimeError("split_with_sizes expects `self` to be contiguous.")
    width = _size(None, t, last)
    if isinstance(split_size, int):
        split_size = [min(split_size, width - at) for at in range(0, width, max(split_size, 1))]
    if any(n < 0 for n in split_size):
        raise RuntimeError(f"split_with_sizes expects split_sizes to be >= 0, got {split_size}")
    if sum(split_size) != width:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {width} (input tensor's size "
            f"at dimension {last}), but got split_sizes={list(split_size)}"
        )
    ends = [sum(split_size[:i]) for i in range(len(split_size))]
    return tuple(
        _view_components(t, lambda p, s=s, n=n: p.narrow(-1, s, n))
        for s, n in zip(ends, split_size, strict=True)
    )


@rule("cat concat concatenate")
def _cat(func: Callable[..., Any], tensors: list[Tensor], dim: int = 0) -> Tensor:
    if not all(t.is_nested for t in tensors):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")
    dims = tensors[0].dim()
    along = _wrap_dim(tensors[0], dim)
    if along == 0:
        return of_components([p for t in tensors for p in components(t)], tensors[0]._windows.dim)
    if any(t.dim() != dims or len(t) != len(tensors[0]) for t in tensors):
        raise RuntimeError(
            f"cat(): nested tensors along dimension {dim} must have equally many components and "
            f"dimensions, not {[(len(t), t.dim()) for t in tensors]}"
        )
    return each(lambda *row: rushlight.cat(row, along - 1), *tensors)
