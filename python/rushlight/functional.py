"""Functions with arguments or results that schemas cannot express: `unique`, `norm(x, "nuc")`.

Each stands before ops of the table, which do the computing; those of its own name are
`wrapped` there and lie in `_C._wrapped`. All are public as `rushlight.NAME`; some are methods
of tensors, too (`_tensor.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

from rushlight import _C
from rushlight._lazy import later

if TYPE_CHECKING:
    from rushlight import Size
    from rushlight._tensor import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

_nn_functional = later("rushlight.nn.functional")
_storage = later("rushlight.storage")

_ops, _wrapped = _C.ops, _C._wrapped


def __getattr__(name):
    if name == "F":  # programs find nn.functional here, too
        return _nn_functional()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _overridable(function: _F) -> _F:
    """The function, public as rushlight.NAME, that modes and `__torch_function__` are offered."""
    function.__module__ = "rushlight"
    return _C._Offered(function)


def einsum(equation: Any = None, *operands: Any) -> Tensor:
    """Sum products along dimensions that letters name: `einsum("ij,jk->ik", a, b)`.

    Or by numbers from 0 to 51 in their place: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Args:
        equation: letters for dimensions, such as "ij,jk->ik".
        operands: the tensors.

    Example:
        >>> torch.einsum("ij,j->i", torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10]))
        tensor([21, 43])
    """
    if isinstance(equation, str) and operands:
        return _wrapped.einsum(equation, *operands)
    if not operands:
        raise ValueError("einsum(): expected the equation and at least one operand")
    if not isinstance(equation, _C.TensorBase):
        kind = type(equation).__name__
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {kind}")
    given = [equation, *operands]
    labels = [_letters(numbers) for numbers in given[1::2]]
    result = "->" + _letters(given[-1]) if len(given) % 2 else ""
    tensors = given[: 2 * len(labels) : 2]
    return _wrapped.einsum(",".join(labels) + result, tensors)


# Others see the operands one by one, also where they were given as a list.
einsum = _C._Offered(einsum, spreads=True)


def _letters(numbers):
    """The subscripts of an operand as einsum's text has them."""
    if not isinstance(numbers, tuple | list) or any(isinstance(n, str) for n in numbers):
        raise TypeError(
            "einsum(): after a tensor comes a list of ints, its subscripts, not "
            f"{type(numbers).__name__}"
        )
    if any(n is not Ellipsis and not 0 <= n < 52 for n in numbers):
        raise ValueError(
            f"einsum(): a subscript is not within the valid range [0, 52) in {numbers}"
        )
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join("..." if n is Ellipsis else letters[n] for n in numbers)


@_overridable
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Expand vectors of coordinates to grids, one grid for each vector.

    Args:
        tensors: the vectors, or a list of them.
        indexing: the order of dimensions: "ij", or "xy" as pictures have it.

    Example:
        >>> rows, columns = torch.meshgrid(
        ...     torch.tensor([1, 2]), torch.tensor([3, 4, 5]), indexing="ij"
        ... )
        >>> rows
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    return _wrapped.meshgrid(*tensors, indexing=indexing)


@_overridable
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape that tensors of these shapes broadcast to.

    Raises:
        RuntimeError: they do not fit.

    Args:
        shapes: the shapes, tuples of integers.

    Example:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
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


@overload
def nonzero(
    input: Tensor, *, out: Tensor | None = None, as_tuple: Literal[False] = False
) -> Tensor: ...
@overload
def nonzero(
    input: Tensor, *, out: Tensor | None = None, as_tuple: Literal[True]
) -> tuple[Tensor, ...]: ...
@overload
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool) -> Any: ...
@_overridable
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The indices of elements that are not zero: one row for each, or one tensor for each
    dimension.

    Args:
        input: the tensor to compute with.
        out: tensors to write the results into, which are resized and returned.
        as_tuple: whether to return one tensor for each dimension.

    Example:
        >>> torch.nonzero(torch.tensor([[0, 1], [2, 0]]))
        tensor([[0, 1],
                [1, 0]])
    """
    return input.nonzero_numpy() if as_tuple else _wrapped.nonzero(input, out=out)


@_overridable
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: _C.dtype | None = None,
) -> Tensor:
    """The norm of all elements, or along dimensions.

    "fro" is the 2-norm of the elements, "nuc" the sum of the singular values of matrices (in two
    dimensions).

    Args:
        input: the tensor to compute with.
        p: the order: a number, "fro" or "nuc".
        dim: the dimension to work along, counted from the end where negative.
        keepdim: whether reduced dimensions stay, with size 1.
        out: tensors to write the results into, which are resized and returned.
        dtype: the dtype of the parameters; the default dtype if None.

    Example:
        >>> torch.norm(torch.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if isinstance(p, str) and p != "fro":
        dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
        return _ops.linalg_matrix_norm(input, p, list(dims), keepdim, dtype=dtype, out=out)
    return _wrapped.norm(input, 2 if p == "fro" else p, dim, keepdim, dtype=dtype, out=out)


_CDIST_MODES = {
    None: 0,
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


@_overridable
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-norms of the differences between all rows of two batches of matrices.

    `compute_mode` says whether distances with p = 2 come from a matrix product. ValueError for an
    unknown one.

    Args:
        x1: points, of shape (…, P, M).
        x2: points, of shape (…, R, M).
        p: the order of the norm, or a probability.
        compute_mode: accepted: 0, 1 and 2 mean whether a matrix product is used.

    Example:
        >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    if compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _wrapped.cdist(x1, x2, p, _CDIST_MODES[compute_mode])


def _select_outputs(results, return_inverse, return_counts):
    values, inverse, counts = results
    chosen = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return chosen if len(chosen) > 1 else values


@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: Literal[False] = False,
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any: ...
@_overridable
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements, or distinct slices along `dim`, in order.

    With `return_inverse` also which of them each element is, with `return_counts` how many.

    Args:
        input: the tensor to compute with.
        sorted: whether the result is sorted.
        return_inverse: whether to tell where each element went.
        return_counts: whether to tell how often each one was there.
        dim: the dimension of slices; None flattens.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is not None:
        results = _ops.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        results = _ops._unique2(input, sorted, return_inverse, return_counts)
    return _select_outputs(results, return_inverse, return_counts)


@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique_consecutive(
    input: Tensor,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor,
    *,
    return_inverse: Literal[False] = False,
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any: ...
@_overridable
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without consecutive repetitions.

    Args:
        input: the tensor to compute with.
        return_inverse: whether to tell where each element went.
        return_counts: whether to tell how often each one was there.
        dim: the dimension of slices; None flattens.

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    results = _wrapped.unique_consecutive(input, return_inverse, return_counts, dim)
    return _select_outputs(results, return_inverse, return_counts)


@_overridable
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums of products over pairs of dimensions.

    `dims` is a number (the last of `a` with the first of `b`) or two lists of dimensions.

    Args:
        a: the first operand.
        b: the second operand.
        dims: dimensions, counted from the end where negative.
        out: tensors to write the results into, which are resized and returned.

    Example:
        >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 2), dims=1)
        tensor([[3., 3.],
                [3., 3.]])
    """
    for name, tensor in (("a", a), ("b", b)):
        if not isinstance(tensor, _C.TensorBase):
            kind = type(tensor).__name__
            raise TypeError(f"tensordot(): argument '{name}' must be Tensor, not {kind}")
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = [*range(-dims, 0)], [*range(dims)]
    if not isinstance(dims, _C.TensorBase | tuple | list) or len(dims) != 2:
        raise RuntimeError(
            "tensordot expects dims to be int or two lists of dimensions of the same length, but "
            f"got dims={dims!r}"
        )
    left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    return _wrapped.tensordot(a, b, left, right, out=out)


@_overridable
def lu(
    input: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None
) -> tuple[Tensor, ...]:
    """The LU factorisation of matrices with row exchanges, as `linalg.lu_factor_ex` returns it.

    With `get_infos` also where each factorisation met a zero on the diagonal (0: nowhere).

    Args:
        input: the tensor to compute with.
        pivot: whether rows are exchanged to keep the factors small.
        get_infos: whether to return the third tensor.
        out: tensors to write the results into, which are resized and returned.

    Example:
        >>> torch.lu(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))[1]
        tensor([1, 2], dtype=torch.int32)
    """
    results = _ops._lu_with_info(input, pivot, not get_infos)[: 3 if get_infos else 2]
    if out is None:
        return tuple(results)
    return tuple(o.resize_(r.shape).copy_(r) for o, r in zip(out, results, strict=True))


def _removed_function(name: str, other: str) -> Callable[..., NoReturn]:
    """A function that PyTorch no longer has: it says what took its place."""

    def function(*args, **kwargs):
        raise RuntimeError(
            "This function was deprecated and is now removed. "
            f"`torch.{name}` is deprecated in favor of `torch.linalg.{other}`."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Removed: use `linalg.{other}`.

    Args:
        args, kwargs: whatever they are, RuntimeError says what to use.

    Example:
        >>> torch.{name}(torch.eye(2))
        Traceback (most recent call last):
            ...
        RuntimeError: This function was deprecated and is now removed. ...
    """
    return _overridable(function)


eig = _removed_function("eig", "eig")
symeig = _removed_function("symeig", "eigh")
lstsq = _removed_function("lstsq", "lstsq")
solve = _removed_function("solve", "solve")
matrix_rank = _removed_function("matrix_rank", "matrix_rank")


@_overridable
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A tensor that maps the first elements of a file.

    Args:
        filename: a path.
        shared: whether writes go to the file, which is created or extended as needed.
        size: number of elements.
        dtype: the dtype of the elements; the default dtype if None.
        layout, device, pin_memory: only the defaults are accepted, since only a strided CPU tensor
            can be mapped.

    Raises:
        RuntimeError: the file cannot be opened, or is too short.

    Example:
        >>> import tempfile
        >>> file = tempfile.NamedTemporaryFile()
        >>> _ = file.write(bytes([1, 2, 3])), file.flush()
        >>> torch.from_file(file.name, size=3, dtype=torch.uint8)
        tensor([1, 2, 3], dtype=torch.uint8)
    """
    plain = layout in (None, _C.strided) and not pin_memory
    if not plain or (device is not None and _C.device(device).type != "cpu"):
        raise RuntimeError("from_file(): a file can be mapped to plain tensors on the CPU only")
    dtype = _ops.get_default_dtype() if dtype is None else dtype
    count = size or 0
    storage = _storage.UntypedStorage.from_file(filename, bool(shared), count * dtype.itemsize)
    return _C._tensor_on(storage, dtype, 0, (count,), (1,))


_listed = {n: f for n, f in vars(_C._listed).items() if not n.startswith("__")}
globals().update(_listed)

__all__ = [
    "broadcast_shapes",
    "cdist",
    "eig",
    "einsum",
    "from_file",
    "lstsq",
    "lu",
    "matrix_rank",
    "meshgrid",
    "nonzero",
    "norm",
    "solve",
    "symeig",
    "tensordot",
    "unique",
    "unique_consecutive",
]
__all__ += list(_listed)
