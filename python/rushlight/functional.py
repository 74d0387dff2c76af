"""Functions whose arguments the schema language cannot say: `einsum("ij,jk", a, b)`.

Each stands over the op of the same name and takes its place in `_C.ops`, and in `Tensor` where it
is a method.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._tensor import Tensor

_ops = _C.ops
_einsum, _meshgrid, _broadcast_tensors = _ops.einsum, _ops.meshgrid, _ops.broadcast_tensors
_nonzero, _norm, _split = _ops.nonzero, _ops.norm, _ops.split
_unique_all, _unique_dim = _ops._unique2, _ops.unique_dim
_unique_consecutive = _ops.unique_consecutive
_atleast_1d, _atleast_2d, _atleast_3d = _ops.atleast_1d, _ops.atleast_2d, _ops.atleast_3d


def _listed(tensors):
    """The tensors of f(a, b) and of f([a, b])."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def einsum(equation, *operands):
    """Sums of products, by the letters of dimensions: `einsum("ij,jk->ik", a, b)`."""
    return _einsum(equation, _listed(operands))


def broadcast_tensors(*tensors):
    """All tensors expanded to their common shape."""
    return _broadcast_tensors(_listed(tensors))


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to.

    Raises:
        RuntimeError: they do not fit.
    """
    sizes: list[int] = []
    for shape in shapes:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(s < 0 for s in shape):
            raise RuntimeError(f"Trying to create tensor with negative dimension: {list(shape)}")
        sizes = [1] * (len(shape) - len(sizes)) + sizes
        for i, size in enumerate(reversed(shape), 1):
            if size != 1 and sizes[-i] not in (1, size):
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    f"{', '.join(map(str, shapes))}"
                )
            sizes[-i] = size if size != 1 else sizes[-i]
    return _C.Size(sizes)


def meshgrid(*tensors, indexing=None):
    """Grids of coordinates from vectors, one grid for each; dimensions in "ij" or "xy" order."""
    if indexing is None:
        _C._warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument."
        )
        indexing = "ij"
    return _meshgrid(_listed(tensors), indexing=indexing)


def _each(function, tensors):
    listed = _listed(tensors)
    if len(tensors) == 1 and listed is tensors:
        return function(tensors[0])
    return tuple(function(t) for t in listed)


def atleast_1d(*tensors):
    """Tensors with at least one dimension."""
    return _each(_atleast_1d, tensors)


def atleast_2d(*tensors):
    """Tensors with at least two dimensions."""
    return _each(_atleast_2d, tensors)


def atleast_3d(*tensors):
    """Tensors with at least three dimensions."""
    return _each(_atleast_3d, tensors)


def nonzero(input, *, out=None, as_tuple=False):
    """The indices of elements that are not zero: a row for each, or a tensor for each dimension."""
    indices = _nonzero(input)
    if as_tuple:
        return indices.unbind(1) if input.dim() else _nonzero(input.unsqueeze(0)).unbind(1)
    if out is None:
        return indices
    return out.resize_(indices.shape).copy_(indices)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The norm of all elements, or along dimensions. "fro" is the 2-norm of the elements.

    Raises:
        RuntimeError: "nuc" needs singular values, which are not here yet.
    """
    if isinstance(p, str):
        if p != "fro":
            raise RuntimeError(f"norm(): only p='fro' and numbers are supported, but got p={p!r}")
        p = 2
    if p is None:
        p = 2
    result = _norm(input, p, dim, keepdim, dtype=dtype)
    return result if out is None else out.resize_(result.shape).copy_(result)


def split(tensor, split_size_or_sections, dim=0):
    """Pieces along a dimension: of one length, or of the lengths in a list."""
    if isinstance(split_size_or_sections, (list, tuple)):
        return _ops.split_with_sizes(tensor, split_size_or_sections, dim)
    return _split(tensor, split_size_or_sections, dim)


def _chosen(results, return_inverse, return_counts):
    values, inverse, counts = results
    chosen = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return chosen if len(chosen) > 1 else values


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or slices along `dim`, in order.

    With `return_inverse` also which of them each element is, with `return_counts` how many.
    """
    if dim is not None:
        results = _unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        results = _unique_all(input, sorted, return_inverse, return_counts)
    return _chosen(results, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements without repetitions that follow each other."""
    results = _unique_consecutive(input, return_inverse, return_counts, dim)
    return _chosen(results, return_inverse, return_counts)


def tensordot(a, b, dims=2, out=None):
    """Sums of products over pairs of dimensions.

    `dims` is a number (the last of `a` with the first of `b`) or two lists of dimensions.
    """
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    left, right = [d % max(a.dim(), 1) for d in left], [d % max(b.dim(), 1) for d in right]
    if [a.size(d) for d in left] != [b.size(d) for d in right]:
        raise RuntimeError("contracted dimensions need to match, but the sizes given do not")
    free_a = [d for d in range(a.dim()) if d not in left]
    free_b = [d for d in range(b.dim()) if d not in right]
    sizes = [a.size(d) for d in free_a] + [b.size(d) for d in free_b]
    inner = _C.Size([a.size(d) for d in left]).numel()
    rows = (
        a.permute(free_a + left).reshape(-1, inner)
        if a.numel()
        else a.new_zeros(_rows(a, free_a), inner)
    )
    columns = (
        b.permute(right + free_b).reshape(inner, -1)
        if b.numel()
        else b.new_zeros(inner, _rows(b, free_b))
    )
    result = rows.mm(columns).reshape(sizes)
    return result if out is None else out.resize_(result.shape).copy_(result)


def _rows(tensor, dims):
    return _C.Size([tensor.size(d) for d in dims]).numel()


def cartesian_prod(*tensors):
    """All combinations of the elements of vectors, a row for each."""
    if len(tensors) == 1:
        return tensors[0]
    return _ops.stack([g.reshape(-1) for g in _meshgrid(tensors, indexing="ij")], 1)


def block_diag(*tensors):
    """Matrices along the diagonal of a larger one, zeros elsewhere."""
    blocks = [atleast_2d(t) for t in tensors]
    if any(b.dim() != 2 for b in blocks):
        raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions.")
    columns = sum(b.size(1) for b in blocks)
    rows, start = [], 0
    for b in blocks:
        before, after = start, columns - start - b.size(1)
        rows.append(_ops.cat([b.new_zeros(b.size(0), before), b, b.new_zeros(b.size(0), after)], 1))
        start += b.size(1)
    return _ops.cat(rows)


_FUNCTIONS = (
    einsum,
    broadcast_tensors,
    broadcast_shapes,
    meshgrid,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    nonzero,
    norm,
    split,
    unique,
    unique_consecutive,
    tensordot,
    cartesian_prod,
    block_diag,
)
for _function in _FUNCTIONS:
    _function.__module__ = "rushlight"
    setattr(_ops, _function.__name__, _function)
for _function in (nonzero, norm, split, unique, unique_consecutive):
    setattr(Tensor, _function.__name__, _function)
