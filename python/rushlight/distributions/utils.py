"""Helpers of distributions: broadcasting, probabilities and logits, lazy properties."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.nn import functional
from rushlight.overrides import is_tensor_like

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

# A property that subclasses may replace by a value.
open_property: Any = property

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast values to tensors of one shape.

    Numbers become tensors with the dtype and on the device of the first tensor, of the default
    dtype where there is none. ValueError for anything else.

    Args:
        values: numbers and tensors.

    Example:
        >>> from rushlight.distributions.utils import broadcast_all
        >>> broadcast_all(1.0, torch.zeros(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(is_tensor_like(value) or isinstance(value, (int, float)) for value in values):
        raise ValueError(
            "Input arguments must all be instances of numbers, tensors or classes like them, not "
            f"{', '.join(type(value).__name__ for value in values)}"
        )
    first = next((value for value in values if isinstance(value, Tensor)), None)
    options: dict[str, Any] = {"dtype": rushlight.get_default_dtype()}
    if first is not None:
        options = {"dtype": first.dtype, "device": first.device}
    return tuple(
        rushlight.broadcast_tensors(
            *(v if is_tensor_like(v) else rushlight.tensor(v, **options) for v in values)
        )
    )


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Standard normal numbers."""
    return rushlight.randn(shape, dtype=dtype, device=device)


def uniform_from(low: float, like: Tensor, shape: Sequence[int]) -> Tensor:
    """Uniform numbers between `low` and 1, of the dtype and on the device of a tensor."""
    return like.new_empty(shape).uniform_(low, 1)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value.flatten(-dim).sum(-1) if dim else value


def clamp_probs(probs: Tensor) -> Tensor:
    """Move probabilities away from 0 and 1 by a machine epsilon, so that logarithms are finite.

    Args:
        probs: probabilities.

    Example:
        >>> from rushlight.distributions.utils import clamp_probs
        >>> clamp_probs(torch.tensor([0.0, 0.5])).log().isfinite()
        tensor([True, True])
    """
    eps = rushlight.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Convert logits to probabilities: sigmoid if binary, else softmax over the last dimension.

    Args:
        logits: the logits.
        is_binary: whether each is that of an event, not of one of several.

    Example:
        >>> from rushlight.distributions.utils import logits_to_probs
        >>> logits_to_probs(torch.zeros(2)), logits_to_probs(torch.zeros(1), is_binary=True)
        (tensor([0.5000, 0.5000]), tensor([0.5000]))
    """
    return logits.sigmoid() if is_binary else functional.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Convert clamped probabilities to logits: log(p / (1 - p)) if binary, else log(p).

    Args:
        probs: probabilities.
        is_binary: whether each is that of an event, not of one of several.

    Example:
        >>> from rushlight.distributions.utils import probs_to_logits
        >>> probs_to_logits(torch.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:
    """A property that is computed when it is first read, and is an ordinary attribute after that.

    Gradients are recorded for it whatever the mode is at that time.

    Args:
        wrapped: the method that computes it.

    Example:
        >>> from rushlight.distributions.utils import lazy_property
        >>> class Circle:
        ...     @lazy_property
        ...     def area(self):
        ...         print("computed")
        ...         return 3.14
        >>> circle = Circle()
        >>> circle.area, circle.area
        computed
        (3.14, 3.14)
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # pyright: ignore[reportArgumentType]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return self
        with rushlight.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _elements_of_triangle(n: int, diag: int) -> int:
    """How many elements of an n x n matrix lie on or below the diagonal `diag`."""
    return sum(min(max(row + 1 + diag, 0), n) for row in range(n))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal, row by row: (..., n, n) to (..., m).

    Args:
        mat: the matrices, (..., n, n).
        diag: the diagonal: 0 for the main one, less for those below.

    Example:
        >>> from rushlight.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
        >>> vec = tril_matrix_to_vec(torch.tensor([[1, 9], [2, 3]]))
        >>> vec, vec_to_tril_matrix(vec)
        (tensor([1, 2, 3]), tensor([[1, 0],
                [2, 3]]))
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    below = rushlight.ones(n, n, device=mat.device).tril(diag).to(rushlight.bool)
    return mat[..., below]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Matrices with these elements on and below a diagonal, 0 above: (..., m) to (..., n, n).

    Args:
        vec: the elements, (..., m).
        diag: the diagonal: 0 for the main one, less for those below.

    For an example see `distributions.utils.tril_matrix_to_vec`.
    """
    size = vec.shape[-1]
    n = max(1, -diag)
    while _elements_of_triangle(n, diag) < size:
        n += 1
    if _elements_of_triangle(n, diag) != size:
        raise ValueError(
            f"The size of last dimension is {size} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    below = rushlight.ones(n, n, device=vec.device).tril(diag).to(rushlight.bool)
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    matrix[..., below] = vec
    return matrix
