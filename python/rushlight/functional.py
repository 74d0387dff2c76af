"""Functions whose arguments the schema language cannot say: `einsum("ij,jk", a, b)`.

Each stands over the op of the same name and takes its place in `_C.ops`, and in `Tensor` where it
is a method.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rushlight import _C
from rushlight._tensor import Tensor

_ops = _C.ops
_einsum, _meshgrid, _broadcast_tensors = _ops.einsum, _ops.meshgrid, _ops.broadcast_tensors
_nonzero, _norm, _split = _ops.nonzero, _ops.norm, _ops.split
_unique_all, _unique_dim = _ops._unique2, _ops.unique_dim
_unique_consecutive = _ops.unique_consecutive
_cdist = _ops.cdist
_atleast_1d, _atleast_2d, _atleast_3d = _ops.atleast_1d, _ops.atleast_2d, _ops.atleast_3d


def _listed(tensors):
    """The tensors of f(a, b) and of f([a, b])."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def _into(out, result):
    """`result`, in `out` where there is one."""
    return result if out is None else out.resize_(result.shape).copy_(result)


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
    return _into(out, indices)


def norm(input, p: Any = "fro", dim: Any = None, keepdim=False, out=None, dtype=None) -> Tensor:
    """The norm of all elements, or along dimensions.

    "fro" is the 2-norm of the elements, "nuc" the sum of the singular values of matrices (in two
    dimensions).
    """
    if isinstance(p, str):
        if p != "fro":
            dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
            return _ops.linalg_matrix_norm(input, p, list(dims), keepdim, dtype=dtype, out=out)
        p = 2
    if p is None:
        p = 2
    return _into(out, _norm(input, p, dim, keepdim, dtype=dtype))


_CDIST_MODES = {
    None: 0,
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norms of the differences between all rows of two batches of matrices.

    `compute_mode` says whether distances with p = 2 come from a matrix product. ValueError for an
    unknown one.
    """
    if compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _cdist(x1, x2, p, _CDIST_MODES[compute_mode])


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


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums of products over pairs of dimensions.

    `dims` is a number (the last of `a` with the first of `b`) or two lists of dimensions.
    """
    for name, tensor in (("a", a), ("b", b)):
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise TypeError(f"tensordot(): argument '{name}' must be Tensor, not {kind}")
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
    height, width = [a.size(d) for d in free_a], [b.size(d) for d in free_b]
    inner = math.prod(a.size(d) for d in left)
    rows = a.permute(free_a + left).reshape(math.prod(height), inner)
    columns = b.permute(right + free_b).reshape(inner, math.prod(width))
    return _into(out, rows.mm(columns).reshape(height + width))


def cartesian_prod(*tensors):
    """All combinations of the elements of vectors, a row for each."""
    if len(tensors) == 1:
        return tensors[0]
    return _ops.stack([g.reshape(-1) for g in _meshgrid(tensors, indexing="ij")], 1)


def block_diag(*tensors):
    """Matrices along the diagonal of a larger one, zeros elsewhere."""
    blocks: list[Any] = [atleast_2d(t) for t in tensors]
    if any(b.dim() != 2 for b in blocks):
        raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions.")
    columns = sum(b.size(1) for b in blocks)
    rows, start = [], 0
    for b in blocks:
        before, after = start, columns - start - b.size(1)
        rows.append(_ops.cat([b.new_zeros(b.size(0), before), b, b.new_zeros(b.size(0), after)], 1))
        start += b.size(1)
    return _ops.cat(rows)


def lu(input, pivot=True, get_infos=False, out=None):
    """The LU factors of matrices and row exchanges, as `linalg.lu_factor_ex` gives them.

    With `get_infos` also where each factorisation met a zero on the diagonal (0: nowhere).
    """
    LU, pivots, info = _ops.linalg_lu_factor_ex(input, pivot=pivot, check_errors=not get_infos)
    results = (LU, pivots, info) if get_infos else (LU, pivots)
    if out is None:
        return results
    return tuple(_into(given, result) for given, result in zip(out, results, strict=True))


def unravel_index(indices, shape):
    """Positions in a flattened tensor of this shape as one index tensor for each dimension.

    Raises:
        TypeError: `indices` are no integers.
        ValueError: a negative size, or none.
    """
    if not isinstance(indices, Tensor) or indices.is_floating_point() or indices.is_complex():
        kind = getattr(indices, "dtype", type(indices).__name__)
        raise TypeError(f"expected 'indices' to be integer dtype, but got {kind}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    found = []
    for size in reversed(sizes):
        found.append(indices % size)
        indices = indices.div(size, rounding_mode="floor")
    return tuple(reversed(found))


def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """Slopes of sampled values along dimensions: central differences inside, one-sided at the ends.

    `spacing` is a number, a number for each dimension, or a vector of coordinates for each.

    Raises:
        RuntimeError: too few samples, an `edge_order` other than 1 and 2, lengths that differ.
    """
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = [d % max(input.dim(), 1) for d in dims]
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != len(dims):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and "
                "dim arguments to have the same length, but got a spacing argument of length "
                f"{len(spacing)} and a dim argument of length {len(dims)}."
            )
        steps = list(spacing)
    else:
        steps = [1 if spacing is None else spacing] * len(dims)
    if any(input.size(d) < edge_order + 1 for d in dims):
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )
    return tuple(_slopes(input, d, step, edge_order) for d, step in zip(dims, steps, strict=True))


def _slopes(values, dim, step, edge_order):
    """`gradient` along one dimension."""
    n = values.size(dim)
    shape = [1] * values.dim()
    shape[dim] = n - 1
    if isinstance(step, Tensor):
        if step.dim() != 1 or step.numel() != n:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have the same length as the "
                f"dimension, but got {tuple(step.shape)} for {n} samples"
            )
        gaps = (step[1:] - step[:-1]).reshape(shape)
    else:
        like = values if values.is_floating_point() or values.is_complex() else values.float()
        gaps = _ops.full(shape, step, dtype=like.dtype, device=values.device)
    slopes = values.diff(dim=dim) / gaps
    first, last = slopes.narrow(dim, 0, 1), slopes.narrow(dim, n - 2, 1)
    if n == 2:
        return _ops.cat([first, last], dim)
    low, high = gaps.narrow(dim, 0, n - 2), gaps.narrow(dim, 1, n - 2)
    left, right = slopes.narrow(dim, 0, n - 2), slopes.narrow(dim, 1, n - 2)
    inner = (left * high + right * low) / (low + high)
    if edge_order == 2:
        # The parabola through the three points at each end.
        second = (right - left) / (low + high)
        first = first - second.narrow(dim, 0, 1) * low.narrow(dim, 0, 1)
        last = last + second.narrow(dim, n - 3, 1) * high.narrow(dim, n - 3, 1)
    return _ops.cat([first, inner, last], dim)


def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """How many points (rows of the last dimension) fall into each box of a grid, and its edges.

    `bins` is a number, a number for each dimension, or a vector of edges for each; `range` holds
    the lowest and highest edge of each dimension, `weight` a weight for each point.

    Raises:
        RuntimeError: sizes that do not fit, a range that is not finite.
    """
    if input.dim() < 2:
        raise RuntimeError(
            "torch.histogramdd: input tensor should have at least 2 dimensions, but got "
            f"{input.dim()}"
        )
    width = input.size(-1)
    bins = [bins] * width if isinstance(bins, int) else list(bins)
    if len(bins) != width:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    points = input.detach().reshape(-1, width)
    if weight is not None and weight.shape != input.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            f"input tensor excluding its innermost dimension, but got input with shape "
            f"{list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    amounts = points.new_ones(len(points)) if weight is None else weight.detach().reshape(-1)
    edges, place, inside = [], 0, None
    for d, wanted in enumerate(bins):
        column = points[:, d].contiguous()
        if isinstance(wanted, Tensor):
            edge = wanted
        else:
            limits = None if range is None else [float(v) for v in range[2 * d : 2 * d + 2]]
            edge = _ops.histogram(column, wanted, range=limits)[1]
        edges.append(edge)
        count = edge.numel() - 1
        here = (column >= edge[0]) & (column <= edge[-1])
        inside = here if inside is None else inside & here
        nearest = (_ops.searchsorted(edge.contiguous(), column, right=True) - 1).clamp(0, count - 1)
        place = place * count + nearest
    sizes = [edge.numel() - 1 for edge in edges]
    hist = points.new_zeros(_C.Size(sizes).numel())
    hist = hist.index_add(0, place, _ops.where(inside, amounts, 0)).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            shape = [1] * width
            shape[d] = -1
            hist = hist / _ops.diff(edge).reshape(shape)
    return _HistogramDD(hist, tuple(edges))


class _HistogramDD(NamedTuple):
    hist: Tensor
    bin_edges: tuple


def empty_permuted(size, physical_layout, **options):
    """Uninitialised memory whose dimensions lie in memory in the order `physical_layout`."""
    size, order = tuple(size), tuple(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            f"Number of dimensions in size ({len(size)}) does not match the length of the "
            f"physical_layout ({len(order)})"
        )
    if len({d % len(size) for d in order}) != len(size):
        raise RuntimeError("Duplicate dim not allowed")
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return _ops.empty([size[d] for d in order], **options).permute(inverse)


def _in_place(name):
    """`rushlight.NAME(input, ...)` for a method that writes into its tensor."""

    def function(input, *args, **kwargs):
        return getattr(input, name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`Tensor.{name}`."
    return function


_WRITERS = """addmv_ as_strided_ clamp_max_ clamp_min_ detach_ fill_ gcd_ i0_ index_put_ lcm_ ldexp_
nan_to_num_ resize_as_ xlogy_ zero_"""
_IN_PLACE = tuple(_in_place(name) for name in _WRITERS.split())


def is_nonzero(input):
    """The truth of a tensor with one element, RuntimeError for any other."""
    return bool(input)


def is_same_size(input, other):
    """Whether two tensors have the same shape."""
    return input.shape == other.shape


def is_signed(input):
    """Whether the dtype has negative numbers."""
    return input.is_signed()


def is_inference(input):
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def get_device(input):
    """The number of the tensor's GPU, -1 on the CPU."""
    return input.get_device()


def dim_order(self, *, ambiguity_check=False):
    """The dimensions in the order in which they lie in memory, the outermost first.

    Raises:
        RuntimeError: `ambiguity_check`, and dimensions of size 1 or equal strides allow several.
    """
    order = sorted(range(self.dim()), key=lambda d: (-self.stride(d), d))
    if ambiguity_check:
        strides = [self.stride(d) for d in order]
        if len(set(strides)) < len(strides) or 1 in self.shape:
            raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(order)


def _map_into(name, callable, tensor, *others):
    """Writes what `callable` gives for the elements of `tensor` and of those that follow it."""
    if tensor.requires_grad:
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. "
            f"Use var.detach().{name}() instead."
        )
    elements = [t.expand_as(tensor).reshape(-1).tolist() for t in (tensor, *others)]
    values = [callable(*element) for element in zip(*elements, strict=True)]
    return tensor.copy_(_ops.tensor(values, dtype=tensor.dtype).reshape(tensor.shape))


def apply_(self, callable):
    """Every element becomes `callable(element)`; slow, for trying things out."""
    return _map_into("apply_", callable, self)


def map_(self, tensor, callable):
    """Every element becomes `callable(element, element of tensor)`; slow."""
    return _map_into("map_", callable, self, tensor)


def map2_(self, x, y, callable):
    """Every element becomes `callable(element, element of x, element of y)`; slow."""
    return _map_into("map2_", callable, self, x, y)


_REMOVED = {
    "eig": "linalg.eig",
    "symeig": "linalg.eigh",
    "lstsq": "linalg.lstsq",
    "solve": "linalg.solve",
    "matrix_rank": "linalg.matrix_rank",
}


def _removed(name, other):
    """A function that PyTorch no longer has: it says what took its place."""

    def function(*args, **kwargs):
        raise RuntimeError(
            "This function was deprecated and is now removed. "
            f"`torch.{name}` is deprecated in favor of `torch.{other}`."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Removed: use `{other}`."
    return function


_GONE = tuple(_removed(name, other) for name, other in _REMOVED.items())


def from_file(
    filename,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
):
    """A tensor on the first elements of a file, which is mapped.

    Args:
        filename: a path.
        shared: what is written goes to the file, which is made or lengthened where it must be.
        size: number of elements.
        dtype: of the elements; the default dtype if None.
        layout, device, pin_memory: only a plain tensor in main memory can lie in a file.

    Raises:
        RuntimeError: the file cannot be opened, or is too short.
    """
    plain = layout in (None, _C.strided) and not pin_memory
    if not plain or (device is not None and _C.device(device).type != "cpu"):
        raise RuntimeError("from_file(): a file can be mapped to plain tensors on the CPU only")
    dtype = _ops.get_default_dtype() if dtype is None else dtype
    count = size or 0
    storage = _C.UntypedStorage.from_file(filename, bool(shared), count * dtype.itemsize)
    return _C._tensor_on(storage, dtype, 0, (count,), (1,))


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
    lu,
    cdist,
    unravel_index,
    gradient,
    histogramdd,
    empty_permuted,
    from_file,
    is_nonzero,
    is_same_size,
    is_signed,
    is_inference,
    get_device,
    *_IN_PLACE,
    *_GONE,
)
for _function in _FUNCTIONS:
    _function.__module__ = "rushlight"
    globals()[_function.__name__] = _C._Offered(_function)
    setattr(_ops, _function.__name__, globals()[_function.__name__])
_METHODS = "nonzero norm split unique unique_consecutive lu is_nonzero is_same_size"
for _name in _METHODS.split(" "):
    setattr(Tensor, _name, _C._Offered(globals()[_name].__wrapped__))
for _function in (apply_, map_, map2_, dim_order, *_GONE):
    setattr(Tensor, _function.__name__, _function)
# Public here as well as in nn.functional.
for _name in ("threshold", "threshold_"):
    setattr(_ops, _name, getattr(_C._nn, _name))
