"""Lowerings of views, copies, casts, and of what takes tensors apart and puts them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops

# ---- the same elements ----


@lowers("aten.to.dtype", "aten.to.device", "aten.to.dtype_layout", "aten.to.other")
@lowers("aten._to_copy.default", "aten.type_as.default")
@lowers(
    "aten.alias.default", "aten.detach.default", "aten.clone.default", "aten.contiguous.default"
)
@lowers("aten.lift_fresh.default", "aten.lift_fresh_copy.default", "aten.resolve_conj.default")
@lowers("aten.resolve_neg.default", "aten.alias_copy.default", "aten.detach_copy.default")
@lowers("aten.conj.default", "aten.conj_physical.default", "aten.real.default")
def same(g: Builder, self: Value) -> Value:
    return converted(g, self, g.result.dtype)


def converted(g: Builder, x: Value, dtype: rushlight.dtype) -> Value:
    """A cast; floats go to small unsigned integers by way of wide ones, as everywhere."""
    if x.dtype.is_floating_point and dtype in (rushlight.uint8, rushlight.int8, rushlight.int16):
        x = g.cast(x, rushlight.int64)
    return g.cast(x, dtype)


@lowers("aten.copy.default")
def copy(g: Builder, self: Value, src: Value) -> Value:
    return g.expand(g.cast(src, self.dtype), self.sizes)


# ---- shapes ----


@lowers("aten.view.default", "aten.reshape.default", "aten.view_copy.default")
def view(g: Builder, self: Value, size: Sequence[Any]) -> Value:
    return g.reshape(self, size)


@lowers("aten.view_as.default", "aten.reshape_as.default")
def view_as(g: Builder, self: Value, other: Value) -> Value:
    return g.reshape(self, other.sizes)


@lowers("aten.flatten.using_ints", "aten.ravel.default")
def flatten(g: Builder, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if self.rank == 0:
        return g.reshape(self, [1])
    shape = self.sizes
    start, end = start_dim % self.rank, end_dim % self.rank
    return g.reshape(self, [*shape[:start], g.product(shape[start : end + 1]), *shape[end + 1 :]])


@lowers("aten.unflatten.int")
def unflatten(g: Builder, self: Value, dim: int, sizes: Sequence[Any]) -> Value:
    shape = self.sizes
    dim %= self.rank
    return g.reshape(self, [*shape[:dim], *sizes, *shape[dim + 1 :]])


@lowers("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def unsqueeze(g: Builder, self: Value, dim: int) -> Value:
    return g.unsqueeze(self, dim)


@lowers("aten.squeeze.default")
def squeeze(g: Builder, self: Value) -> Value:
    dims = [i for i, s in enumerate(self.sizes) if isinstance(s, int) and s == 1]
    return g.squeeze(self, *dims)


@lowers("aten.squeeze.dim", "aten.squeeze.dims")
def squeeze_dims(g: Builder, self: Value, dim: int | Sequence[int]) -> Value:
    shape = self.sizes
    if not shape:
        return self
    dims = [d % self.rank for d in ([dim] if isinstance(dim, int) else dim)]
    return g.squeeze(self, *(d for d in dims if isinstance(shape[d], int) and shape[d] == 1))


@lowers("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
@lowers("aten.transpose_copy.int", "aten.transpose_.default")
def transpose(g: Builder, self: Value, dim0: int, dim1: int) -> Value:
    return g.swap(self, dim0, dim1)


@lowers("aten.t.default", "aten.t_copy.default")
def t(g: Builder, self: Value) -> Value:
    return g.swap(self, 0, 1) if self.rank == 2 else self


@lowers("aten.adjoint.default")
def matrix_transpose(g: Builder, self: Value) -> Value:
    return g.swap(self, -1, -2)


@lowers("aten.permute.default", "aten.permute_copy.default")
def permute(g: Builder, self: Value, dims: Sequence[int]) -> Value:
    return g.transpose(self, dims)


@lowers("aten.movedim.intlist", "aten.movedim.int", "aten.moveaxis.intlist", "aten.moveaxis.int")
def movedim(g: Builder, self: Value, source: Any, destination: Any) -> Value:
    sources = [source] if isinstance(source, int) else source
    places = [destination] if isinstance(destination, int) else destination
    moved = {p % self.rank: s % self.rank for s, p in zip(sources, places, strict=True)}
    rest = iter(d for d in range(self.rank) if d not in moved.values())
    return g.transpose(self, [moved[d] if d in moved else next(rest) for d in range(self.rank)])


@lowers("aten.expand.default", "aten.broadcast_to.default", "aten.expand_copy.default")
def expand(g: Builder, self: Value, size: Sequence[Any]) -> Value:
    shape = self.sizes
    new = len(size) - len(shape)
    kept = [*size[:new], *shape]
    sizes = [k if isinstance(s, int) and s == -1 else s for s, k in zip(size, kept, strict=True)]
    return g.expand(self, sizes)


@lowers("aten.expand_as.default")
def expand_as(g: Builder, self: Value, other: Value) -> Value:
    return g.expand(self, other.sizes)


@lowers("aten.broadcast_tensors.default")
def broadcast_tensors(g: Builder, tensors: list[Value]) -> list[Value]:
    return g.broadcast(*tensors)


@lowers("aten.atleast_1d.default", "aten.atleast_2d.default", "aten.atleast_3d.default")
def atleast(g: Builder, self: Value) -> Value:
    return g.reshape(self, g.result.shape)


# ---- repetition, order ----


@lowers("aten.repeat.default", "aten.tile.default")
def repeat(g: Builder, self: Value, repeats: Sequence[Any]) -> Value:
    repeats = [*[1] * (self.rank - len(repeats)), *repeats]
    x = g.reshape(self, [*[1] * (len(repeats) - self.rank), *self.sizes])
    return g.Tile(x, g.vector(repeats)) if repeats else x


@lowers("aten.repeat_interleave.self_int")
def repeat_interleave(g: Builder, self: Value, repeats: Any, dim: int | None) -> Value:
    x = g.reshape(self, [-1]) if dim is None else self
    if dim is None:
        x.shape = (g.product(self.sizes),)
    dim = 0 if dim is None else dim % self.rank
    shape = list(x.sizes)
    x = g.unsqueeze(x, dim + 1)
    x = g.Expand(x, g.vector([*shape[: dim + 1], repeats, *shape[dim + 1 :]]))
    return g.reshape(x, [*shape[:dim], -1, *shape[dim + 1 :]])


@lowers("aten.flip.default", "aten.fliplr.default", "aten.flipud.default")
def flip(g: Builder, self: Value, dims: Sequence[int] = ()) -> Value:
    if "flipl" in g.overload or "flipu" in g.overload:
        dims = [1 if "flipl" in g.overload else 0]
    if not dims:
        return self
    n = len(dims)
    return g.Slice(self, [-1] * n, [-(2**62)] * n, list(dims), [-1] * n)


@lowers("aten.roll.default")
def roll(g: Builder, self: Value, shifts: Sequence[int], dims: Sequence[int]) -> Value:
    x = self if dims else g.reshape(self, [-1])
    for shift, dim in zip(shifts, dims or [0], strict=True):
        size = g.size(self, dim) if dims else g.product(self.sizes)
        if isinstance(size, int):
            shift = shift % size if size else 0
        if shift:
            last = g.slice(x, dim, -shift, 2**62)
            x = g.Concat(last, g.slice(x, dim, 0, -shift), axis=dim)
    return x if dims else g.reshape(x, self.sizes)


@lowers("aten.rot90.default")
def rot90(g: Builder, self: Value, k: int, dims: Sequence[int]) -> Value:
    a, b = dims
    k %= 4
    if k == 2:
        return flip(g, self, [a, b])
    turned = flip(g, self, [b] if k == 1 else [a]) if k else self
    turned.shape = self.shape
    return g.swap(turned, a, b) if k else self


@lowers("aten.tril.default", "aten.triu.default")
def tril(g: Builder, self: Value, diagonal: int) -> Value:
    x = g.cast(self, rushlight.int64) if self.dtype == rushlight.bool else self
    return g.cast(g.Trilu(x, g.int64(diagonal), upper=int("triu" in g.overload)), self.dtype)


@lowers("aten.diagonal.default", "aten.diagonal_copy.default", "aten.linalg_diagonal.default")
def diagonal(g: Builder, self: Value, offset: int, dim1: int, dim2: int) -> Value:
    dim1, dim2 = dim1 % self.rank, dim2 % self.rank
    rest = [d for d in range(self.rank) if d not in (dim1, dim2)]
    x = g.transpose(self, [*rest, dim1, dim2])
    rows, columns = x.sizes[-2:]
    if not (isinstance(rows, int) and isinstance(columns, int)):
        raise Unsupported("the sizes of the matrix are not constant")
    first = max(0, -offset) * columns + max(0, offset)
    length = max(0, min(rows + min(0, offset), columns - max(0, offset)))
    places = [first + i * (columns + 1) for i in range(length)]
    flat = g.reshape(x, [*x.sizes[:-2], rows * columns])
    return g.Gather(flat, g.int64(places), axis=len(rest))


@lowers("aten.diag_embed.default", "aten.diag.default")
def diag_embed(g: Builder, self: Value, offset: int, dim1: int = -2, dim2: int = -1) -> Value:
    if "diag.default" in g.overload and self.rank == 2:
        return diagonal(g, self, offset, 0, 1)
    n = g.size(self, -1)
    if not isinstance(n, int) or (dim1, dim2) != (-2, -1):
        raise Unsupported("other dimensions than the last two, or a size that is not constant")
    wide = n + abs(offset)
    mask = rushlight.zeros(wide, wide, dtype=rushlight.bool)
    mask.diagonal(offset).fill_(True)
    before = max(0, -offset), max(0, offset)
    rows = g.Pad(self, [before[1], wide - n - before[1]], None, g.int64([-1]))
    return g.Where(g.constant(mask), g.unsqueeze(rows, -2), g.constant(0, self.dtype))


@lowers("aten.pixel_shuffle.default", "aten.pixel_unshuffle.default")
def pixel_shuffle(g: Builder, self: Value, factor: int) -> Value:
    *batch, channels, height, width = self.sizes
    x = self if len(batch) == 1 else g.reshape(self, [-1, channels, height, width])
    if "unshuffle" not in g.overload:
        x = _to_space(g, x, channels, height, width, factor)
    else:
        x = g.reshape(
            x, [-1, channels, g.share(height, factor), factor, g.share(width, factor), factor]
        )
        x.shape = (None,) * 6
        x = g.transpose(x, [0, 1, 3, 5, 2, 4])
    return x if len(batch) == 1 and "unshuffle" not in g.overload else g.reshape(x, g.result.shape)


def _to_space(g: Builder, x: Value, channels: Any, height: Any, width: Any, factor: int) -> Value:
    if x.dtype.is_floating_point:
        return g.DepthToSpace(x, blocksize=factor, mode="CRD")
    x = g.reshape(x, [-1, g.share(channels, factor**2), factor, factor, height, width])
    x.shape = (None,) * 6
    return g.reshape(g.transpose(x, [0, 1, 4, 2, 5, 3]), g.result.shape)


@lowers("aten.channel_shuffle.default")
def channel_shuffle(g: Builder, self: Value, groups: int) -> Value:
    n, channels, *rest = self.sizes
    x = g.reshape(self, [n, groups, g.share(channels, groups), *rest])
    return g.reshape(g.swap(x, 1, 2), self.sizes)


# ---- parts ----


@lowers("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(g: Builder, self: Value, dim: int, start: Any, end: Any, step: int) -> Value:
    start = 0 if start is None else start
    end = 2**62 if end is None else end
    if isinstance(start, int) and start == 0 and isinstance(end, int) and step == 1:
        size = g.size(self, dim)
        if end >= (size if isinstance(size, int) else 2**31):
            return self
    return g.slice(self, dim, start, end, step)


@lowers("aten.narrow.default", "aten.narrow.Tensor", "aten.narrow_copy.default")
def narrow(g: Builder, self: Value, dim: int, start: Any, length: Any) -> Value:
    if isinstance(start, int) and isinstance(length, int):
        end = start + length
        # From the end, 0 is beyond the last element.
        return g.slice(self, dim, start, 2**62 if start < 0 <= end else end)
    return g.slice(self, dim, start, g.Add(g.int64(start), g.int64(length)))


@lowers("aten.select.int", "aten.select_copy.int")
def select(g: Builder, self: Value, dim: int, index: Any) -> Value:
    return g.Gather(self, g.int64(index), axis=dim)


def pieces(g: Builder, x: Value, sizes: Sequence[Any], dim: int) -> list[Value]:
    """A tensor cut along a dimension."""
    if len(sizes) == 1:
        return [x]
    return list(g.Split(x, g.vector(sizes), axis=dim, outputs=len(sizes)))


@lowers("aten.split.Tensor", "aten.chunk.default", "aten.unsafe_split.Tensor")
@lowers("aten.unsafe_chunk.default", "aten.tensor_split.sections", "aten.tensor_split.indices")
@lowers("aten.split_with_sizes.default", "aten.split.sizes", "aten.split_copy.Tensor")
@lowers("aten.unsafe_split_with_sizes.default")
def split(g: Builder, self: Value, dim: int) -> list[Value]:
    return pieces(g, self, [part.shape[dim] for part in g.parts], dim)


@lowers("aten.hsplit.int", "aten.vsplit.int", "aten.dsplit.int")
@lowers("aten.hsplit.array", "aten.vsplit.array", "aten.dsplit.array")
def hsplit(g: Builder, self: Value) -> list[Value]:
    dim = {"h": min(1, self.rank - 1), "v": 0, "d": 2}[g.overload.split(".")[1][0]]
    return pieces(g, self, [part.shape[dim] for part in g.parts], dim)


@lowers("aten.unbind.int", "aten.unbind_copy.int")
def unbind(g: Builder, self: Value, dim: int) -> list[Value]:
    return [g.squeeze(part, dim) for part in pieces(g, self, [1] * len(g.parts), dim)]


@lowers("aten.unfold.default")
def unfold(g: Builder, self: Value, dimension: int, size: int, step: int) -> Value:
    length = g.size(self, dimension)
    if not isinstance(length, int):
        raise Unsupported("the size of the dimension is not constant")
    dim = dimension % self.rank
    windows = [[s + i for i in range(size)] for s in range(0, length - size + 1, step)]
    x = g.Gather(self, g.int64(windows), axis=dim)
    x.shape = (*self.sizes[:dim], len(windows), size, *self.sizes[dim + 1 :])
    return g.transpose(x, [d for d in range(self.rank + 1) if d != dim + 1] + [dim + 1])


# ---- together ----


@lowers("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def cat(g: Builder, tensors: list[Value], dim: int) -> Value:
    dtype = g.result.dtype
    # A vector without elements fits anything.
    parts = [g.cast(t, dtype) for t in tensors if t.shape != (0,) or g.result.rank == 1]
    return g.Concat(*parts, axis=dim) if len(parts) > 1 else parts[0]


@lowers("aten.stack.default")
def stack(g: Builder, tensors: list[Value], dim: int) -> Value:
    dim %= tensors[0].rank + 1
    parts = [g.unsqueeze(g.cast(t, g.result.dtype), dim) for t in tensors]
    return g.Concat(*parts, axis=dim) if len(parts) > 1 else parts[0]


@lowers("aten.hstack.default", "aten.vstack.default", "aten.dstack.default")
@lowers("aten.row_stack.default", "aten.column_stack.default")
def hstack(g: Builder, tensors: list[Value]) -> Value:
    name = g.overload.split(".")[1]
    rank = {"hstack": 1, "column_stack": 2, "dstack": 3}.get(name, 2)
    parts = []
    for t in tensors:
        shape = list(t.sizes)
        while len(shape) < rank:
            late = (name == "column_stack" and shape) or (name == "dstack" and len(shape) == 2)
            shape = [*shape, 1] if late else [1, *shape]
        parts.append(g.cast(g.reshape(t, shape), g.result.dtype))
    wide = parts[0].rank
    axis = {"hstack": min(1, wide - 1), "column_stack": 1, "dstack": 2}.get(name, 0)
    return g.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


@lowers("aten.diff.default")
def diff(
    g: Builder, self: Value, n: int, dim: int, prepend: Value | None, append: Value | None
) -> Value:
    parts = [part for part in (prepend, self, append) if part is not None]
    x = g.Concat(*parts, axis=dim) if len(parts) > 1 else self
    if n == 0:
        return self
    for _ in range(n):
        a, b = g.slice(x, dim, 1, 2**62), g.slice(x, dim, 0, -1)
        x = g.Xor(a, b) if x.dtype == rushlight.bool else g.Sub(a, b)
    return x


@lowers("aten.kron.default")
def kron(g: Builder, self: Value, other: Value) -> Value:
    a, b = g.operands(self, other)
    rank = max(a.rank, b.rank)
    left, right = ([*[1] * (rank - x.rank), *x.sizes] for x in (a, b))
    a = g.reshape(a, [s for size in left for s in (size, 1)])
    b = g.reshape(b, [s for size in right for s in (1, size)])
    return g.reshape(g.Mul(a, b), g.result.shape)


@lowers("aten.meshgrid.default", "aten.meshgrid.indexing")
def meshgrid(g: Builder, tensors: list[Value], indexing: str = "ij") -> list[Value]:
    sizes = [t.shape[0] if t.shape else 1 for t in tensors]
    places = list(range(len(tensors)))
    if indexing == "xy" and len(places) > 1:
        places[0], places[1], sizes[0], sizes[1] = 1, 0, sizes[1], sizes[0]
    grids = []
    for t, place in zip(tensors, places, strict=True):
        flat = [1] * len(sizes)
        flat[place] = -1
        grids.append(g.expand(g.reshape(t, flat), sizes))
    return grids
