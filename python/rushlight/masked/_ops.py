"""Masked reductions, scans and normalisations: the plain ops on inputs with identities put in."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import rushlight
from rushlight._checks import wrap_dim
from rushlight._texts.docstrings import with_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rushlight import Tensor
    from rushlight.types import _dtype

_SCANS = ("cumsum", "cumprod")
_NORMALISATIONS = ("softmax", "log_softmax", "softmin", "normalize")
# What the masked elements of these are replaced by is the identity of another op.
_IDENTITY_OF = {
    "cumsum": "sum",
    "cumprod": "prod",
    "argmax": "amax",
    "argmin": "amin",
    "softmax": "amax",
    "log_softmax": "amax",
    "softmin": "amin",
    "normalize": "sum",
}


def _canonical_dim(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Dimensions as a sorted tuple of numbers from 0; None and () mean all of them."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    rank = max(ndim, 1)
    dims = []
    for d in (dim,) if isinstance(dim, int) else dim:
        place = wrap_dim(d, rank)
        if place in dims:
            raise RuntimeError(f"dim={place} appears multiple times in the list of dims")
        dims.append(place)
    return tuple(sorted(dims)) if ndim else ()


def _least(dtype: rushlight.dtype) -> float:
    return -rushlight.inf if dtype.is_floating_point else rushlight.iinfo(dtype).min


def _greatest(dtype: rushlight.dtype) -> float:
    return rushlight.inf if dtype.is_floating_point else rushlight.iinfo(dtype).max


def _reduction_identity(op_name: str, input, *args):
    """What leaves a reduction as it is, as a tensor without dimensions; None if there is none.

    Args:
        op_name: the name of a function of this module, with or without its module's before it.
        input: of the dtype and on the device wanted.
        args: those of the reduction: `norm` has an identity for each `ord`.
    """
    name = op_name.rsplit(".", 1)[-1]
    dtype, device = input.dtype, input.device
    if name in ("mean", "var", "std"):
        return None
    if name == "median":
        kind = dtype if dtype.is_floating_point else rushlight.get_default_dtype()
        return rushlight.tensor(rushlight.nan, dtype=kind, device=device)
    if name == "norm":
        order = args[0] if args else 2
        lowest = order == -rushlight.inf
        if lowest and not dtype.is_floating_point:
            raise AssertionError(f"input must be floating point, got {dtype}")
        return rushlight.tensor(rushlight.inf if lowest else 0, dtype=dtype, device=device)
    if name not in _NORMALISATIONS:
        name = _IDENTITY_OF.get(name, name)
    if name in ("sum", "prod"):
        return rushlight.tensor(int(name == "prod"), dtype=dtype, device=device)
    if name in ("amax", "amin", "logsumexp", "logaddexp") and dtype != rushlight.bool:
        if dtype.is_complex and name[0] == "l":
            number = complex(-rushlight.inf, 0)
        else:
            number = _greatest(dtype) if name == "amin" else _least(dtype)
        return rushlight.tensor(number, dtype=dtype, device=device)
    raise NotImplementedError(f"identity of {op_name} on {dtype} input")


def _where(mask, input, fill_value):
    """`input` where the mask is True, `fill_value` elsewhere."""
    return rushlight.where(mask, input, fill_value)


def _input_mask(input, *args, **kwargs):
    """The mask of a call as a bool tensor of the input's shape; ValueError if it has none."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("input mask is not given")
    if mask.layout is not rushlight.strided:
        mask = mask.to_dense()
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(
                f"expected broadcastable mask, but got mask dimensionality higher: {mask.ndim}, "
                f"and {input.ndim} of the input"
            )
        mask = mask.expand(input.shape)
    return mask if mask.dtype == rushlight.bool else mask != 0


def _output_mask(op, input, *args, **kwargs):
    """Which elements of a call's result come from at least one element of the input."""
    name = getattr(op, "__name__", "")
    if name == "logaddexp":
        other = kwargs["other"] if "other" in kwargs else args[0]
        masks = ((input, "input_mask"), (other, "other_mask"))
        first, second = (
            _input_mask(tensor, mask=kwargs.get(key)) if kwargs.get(key) is not None else None
            for tensor, key in masks
        )
        if first is None or second is None:
            shape = rushlight.broadcast_shapes(input.shape, other.shape)
            return rushlight.ones(shape, dtype=rushlight.bool, device=input.device)
        return first | second
    if name not in _REDUCTIONS and name not in _SCANS and name not in _NORMALISATIONS:
        raise ValueError(f"{name or op} is not an operation of rushlight.masked")
    mask = _input_mask(input, *args, **kwargs)
    if name not in _REDUCTIONS:
        return mask
    place = 1 if name == "norm" else 0  # `ord` stands before `dim`
    default = -1 if name == "median" else None
    dim = args[place] if len(args) > place else kwargs.get("dim", default)
    return _count(mask, dim, kwargs.get("keepdim", False)) > 0


def _combine_input_and_mask(op, input, mask, *args):
    """The input with the op's identity where the mask is False."""
    if mask is None:
        return input
    name = op if isinstance(op, str) else op.__name__
    mask = _input_mask(input, mask=mask)
    return _where(mask, input, _reduction_identity(_IDENTITY_OF.get(name, name), input, *args))


def _count(mask, dim, keepdim):
    return rushlight.sum(mask, _canonical_dim(dim, mask.ndim), keepdim=bool(keepdim))


def _sum_dtype(dtype: rushlight.dtype, given: rushlight.dtype | None) -> rushlight.dtype:
    """The dtype of sums and products: integers are added up in int64."""
    if given is not None:
        return given
    return dtype if dtype.is_floating_point or dtype.is_complex else rushlight.int64


_Reduction = TypeVar("_Reduction")


def _of_any_layout(needs_mask: bool) -> Callable[[_Reduction], _Reduction]:
    """Sparse inputs too: their result has their layout.

    Where zero is not what is reduced to nothing, elements without an entry have to be told from
    those outside the mask, and PyTorch wants a mask (`needs_mask`).
    """

    def decorate(reduction: Any) -> Any:
        @functools.wraps(reduction)
        def reduce(
            input: Tensor,
            dim: int | Sequence[int] | None = None,
            *,
            keepdim: bool = False,
            dtype: rushlight.dtype | None = None,
            mask: Tensor | None = None,
        ) -> Tensor:
            if input.layout is not rushlight.strided:
                if needs_mask and mask is None:
                    raise ValueError(
                        f"masked {reduction.__name__} expects explicit mask for "
                        f"{str(input.layout).rpartition('.')[2]} tensor input"
                    )
                layout, input = input.layout, input.to_dense()
                mask = mask if mask is None else mask.to_dense()
                result = reduction(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
                return result.to_sparse(layout=layout)
            return reduction(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)

        return reduce

    return decorate


@_of_any_layout(needs_mask=False)
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements in the mask.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.sum(x, mask=mask)
        tensor(6.)
    """
    input = input.to(_sum_dtype(input.dtype, dtype))
    filled = _combine_input_and_mask(sum, input, mask)
    return rushlight.sum(filled, _canonical_dim(dim, input.ndim), keepdim=bool(keepdim))


@_of_any_layout(needs_mask=True)
def prod(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements in the mask.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.prod(x, mask=mask)
        tensor(8.)
    """
    result = _combine_input_and_mask(prod, input.to(_sum_dtype(input.dtype, dtype)), mask)
    for d in reversed(_canonical_dim(dim, input.ndim)):
        result = rushlight.prod(result, d, keepdim=bool(keepdim))
    return result


def cumsum(
    input: Tensor,
    dim: int | Sequence[int],
    *,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Running sums along a dimension, past the elements outside of the mask.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.cumsum(x, 0, mask=mask)
        tensor([2., 2., 6.])
    """
    (dim,) = _canonical_dim(dim, input.ndim) or (0,)
    input = _numbers("cumsum", input.to(dtype or input.dtype))
    return rushlight.cumsum(_combine_input_and_mask(cumsum, input, mask), dim, dtype=input.dtype)


def cumprod(
    input: Tensor,
    dim: int | Sequence[int],
    *,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Running products along a dimension, past the elements outside of the mask.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.cumprod(x, 0, mask=mask)
        tensor([2., 2., 8.])
    """
    (dim,) = _canonical_dim(dim, input.ndim) or (0,)
    input = _numbers("cumprod", input.to(dtype or input.dtype))
    return rushlight.cumprod(_combine_input_and_mask(cumprod, input, mask), dim, dtype=input.dtype)


def _numbers(name: str, input: Tensor) -> Tensor:
    if input.dtype == rushlight.bool:
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    return input


@_of_any_layout(needs_mask=True)
def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest of the elements in the mask; the lowest number of the dtype where none is.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.amax(x, mask=mask)
        tensor(4.)
    """
    input = input.to(dtype or input.dtype)
    filled = _combine_input_and_mask(amax, input, mask)
    return rushlight.amax(filled, _canonical_dim(dim, input.ndim), bool(keepdim))


@_of_any_layout(needs_mask=True)
def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest of the elements in the mask; the greatest number of the dtype where none is.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([False, True, True])
        >>> torch.masked.amin(x, mask=mask)
        tensor(4.)
    """
    input = input.to(dtype or input.dtype)
    filled = _combine_input_and_mask(amin, input, mask)
    return rushlight.amin(filled, _canonical_dim(dim, input.ndim), bool(keepdim))


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest of the elements in the mask stands.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.argmax(x, mask=mask)
        tensor(2.)
    """
    input = input.to(dtype or input.dtype)
    filled = _combine_input_and_mask(argmax, input, mask)
    return rushlight.argmax(filled, dim, bool(keepdim)).to(input.dtype)  # PyTorch's dtype


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest of the elements in the mask stands.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([False, True, True])
        >>> torch.masked.argmin(x, mask=mask)
        tensor(2.)
    """
    input = input.to(dtype or input.dtype)
    filled = _combine_input_and_mask(argmin, input, mask)
    return rushlight.argmin(filled, dim, bool(keepdim)).to(input.dtype)  # PyTorch's dtype


@_of_any_layout(needs_mask=False)
def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements in the mask.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.mean(x, mask=mask)
        tensor(3.)
    """
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype from {dtype}: means are floating point or "
            "complex numbers, so pass dtype="
        )
    if mask is None:
        dims = _canonical_dim(dim, input.ndim)
        return rushlight.mean(input, dims, keepdim=bool(keepdim), dtype=dtype)
    mask = _input_mask(input, mask=mask)
    total = sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(mask, dim, keepdim)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median of the elements in the mask along a dimension, the lower one of two.

    NaN in the mask are passed over. ValueError if no element of a row of integers is in it.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0, 9.0]), torch.tensor([True, False, True, True])
        >>> torch.masked.median(x, 0, mask=mask)
        tensor(4.)
    """
    dtype = dtype or input.dtype
    dims = _canonical_dim(dim, input.ndim) or (0,)
    if len(dims) != 1:
        raise ValueError(f"masked median is taken along one dimension, but dim is {dim}")
    (dim,) = dims
    values = input if input.dtype.is_floating_point else input.to(rushlight.get_default_dtype())
    if values.dtype != dtype and dtype.is_floating_point:
        values = values.to(dtype)
    filled = _combine_input_and_mask(median, values, mask)
    result = rushlight.nanmedian(filled, dim, bool(keepdim)).values
    if not dtype.is_floating_point and bool(result.isnan().any()):
        raise ValueError(
            f"masked median expects no fully masked out rows of {dtype}, which has no NaN for them"
        )
    return result.to(dtype)


def logsumexp(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of the exponentials of the elements in the mask.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.logsumexp(x, 0, mask=mask)
        tensor(4.1269)
    """
    input = input.to(dtype or input.dtype)
    filled = _combine_input_and_mask(logsumexp, input, mask)
    dims = _canonical_dim(dim, input.ndim)
    return rushlight.logsumexp(filled, dims, bool(keepdim)).to(input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: _dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials, each taken where its mask is True.

    Args:
        other: the second tensor.
        input_mask: where `input` counts, a bool tensor.
        other_mask: where `other` counts, a bool tensor.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0]), torch.tensor([True, False])
        >>> torch.masked.logaddexp(x, x, input_mask=mask, other_mask=torch.tensor([True, True]))
        tensor([2.6931, 7.0000])
    """
    dtype = dtype or input.dtype
    first = _combine_input_and_mask(logaddexp, input.to(dtype), input_mask)
    second = _combine_input_and_mask(logaddexp, other.to(dtype), other_mask)
    return rushlight.logaddexp(first, second)


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the elements in the mask.

    Args:
        ord: the power, 2 for lengths; infinities are extremes.

    Example:
        >>> x, mask = torch.tensor([3.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.norm(x, mask=mask)
        tensor(5.)
    """
    input = input.to(dtype or input.dtype)
    filled = _combine_input_and_mask(norm, input, mask, ord)
    dims = _canonical_dim(dim, input.ndim)
    return rushlight.linalg.vector_norm(filled, ord, dims, keepdim=bool(keepdim))


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise ValueError("only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    if dtype is None:
        floats = input.dtype.is_floating_point or input.dtype.is_complex
        dtype = input.dtype if floats else rushlight.get_default_dtype()
    if input.dtype == rushlight.bool:
        raise RuntimeError("the variance of bools is not defined: convert them to numbers first")
    input = input.to(dtype)
    if mask is None:
        mask = rushlight.ones(input.shape, dtype=rushlight.bool, device=input.device)
    mask = _input_mask(input, mask=mask)
    centre = sum(input, dim, keepdim=True, mask=mask) / _count(mask, dim, True)
    apart = input - centre
    total = sum(apart * apart.conj(), dim, keepdim=keepdim, mask=mask)
    count = _count(mask, dim, keepdim)
    return (total / (count - correction).clamp(min=0)).to(total.dtype)


def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements in the mask.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.var(x, 0, unbiased=True, mask=mask)
        tensor(2.)
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements in the mask.

    Example:
        >>> x, mask = torch.tensor([2.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.std(x, 0, unbiased=True, mask=mask)
        tensor(1.4142)
    """
    return rushlight.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))


def _call_along_dim(op, function, input, dim, dtype, mask):
    (dim,) = _canonical_dim(dim, input.ndim) or (0,)
    return function(_combine_input_and_mask(op, input.to(dtype or input.dtype), mask), dim)


def softmax(
    input: Tensor,
    dim: int | Sequence[int],
    *,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`softmax` over the elements in the mask; 0 elsewhere.

    Example:
        >>> x, mask = torch.tensor([0.0, 7.0, 0.0]), torch.tensor([True, False, True])
        >>> torch.masked.softmax(x, 0, mask=mask)
        tensor([0.5000, 0.0000, 0.5000])
    """
    return _call_along_dim(softmax, rushlight.softmax, input, dim, dtype, mask)


def log_softmax(
    input: Tensor,
    dim: int | Sequence[int],
    *,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`log_softmax` over the elements in the mask; -inf elsewhere.

    Example:
        >>> x, mask = torch.tensor([0.0, 7.0, 0.0]), torch.tensor([True, False, True])
        >>> torch.masked.log_softmax(x, 0, mask=mask)
        tensor([-0.6931,    -inf, -0.6931])
    """
    return _call_along_dim(log_softmax, rushlight.log_softmax, input, dim, dtype, mask)


def softmin(
    input: Tensor,
    dim: int | Sequence[int],
    *,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`softmax` of the negative over the elements in the mask; 0 elsewhere.

    Example:
        >>> x, mask = torch.tensor([0.0, 7.0, 0.0]), torch.tensor([True, False, True])
        >>> torch.masked.softmin(x, 0, mask=mask)
        tensor([0.5000, 0.0000, 0.5000])
    """
    return _call_along_dim(softmin, rushlight.nn.functional.softmin, input, dim, dtype, mask)


def normalize(
    input: Tensor,
    ord: Any,
    dim: int | Sequence[int],
    *,
    eps: float = 1e-12,
    dtype: _dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements in the mask over their norm along a dimension, or over `eps` if that is less.

    Args:
        ord: the power of the norm, 2 for lengths.
        eps: the least that is divided by.

    Example:
        >>> x, mask = torch.tensor([3.0, 7.0, 4.0]), torch.tensor([True, False, True])
        >>> torch.masked.normalize(x, 2.0, 0, mask=mask)
        tensor([0.6000, 0.0000, 0.8000])
    """
    input = input.to(dtype or input.dtype)
    length = norm(input, ord, dim, keepdim=True, mask=mask)
    return _combine_input_and_mask(normalize, input, mask) / length.clamp(min=eps)


_REDUCTIONS = {
    function.__name__
    for function in (
        *(sum, prod, amax, amin, argmax, argmin),
        *(mean, median, norm, var, std, logsumexp),
    )
}


_ARGUMENTS = {
    "input": "the tensor.",
    "dim": "the dimension, or several in a tuple where there is a result for them together; None: "
    "all.",
    "keepdim": "whether these dimensions stay, with size 1.",
    "dtype": "the dtype in which it is computed, and of the result; None: that of the plain op.",
    "mask": "a bool tensor that is broadcast to `input`; True where an element counts. None: all.",
    "unbiased": "whether the sum is divided by one less than the number of elements.",
    "correction": "how many less than the number of elements it is divided by, instead.",
}
for _function in (
    *(sum, prod, cumsum, cumprod, amax, amin, argmax, argmin, mean, median, logsumexp, logaddexp),
    *(norm, var, std, softmax, log_softmax, softmin, normalize),
):
    with_arguments(_function, _ARGUMENTS)
