"""Parameters as one flat vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight
from rushlight import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Tensor | Iterable[Tensor]) -> Tensor:
    """Concatenate the values of all parameters to a 1-d tensor.

    Args:
        parameters: a tensor, or an iterable of them.

    Example:
        >>> torch.nn.utils.parameters_to_vector(torch.nn.Linear(2, 3).parameters()).shape
        torch.Size([9])
    """
    return rushlight.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Tensor | Iterable[Tensor]) -> None:
    """Set the values of parameters to slices of a 1-d tensor, in order.

    Args:
        vec: the values, a 1-d tensor.
        parameters: a tensor, or an iterable of them.

    Example:
        >>> net = torch.nn.Linear(1, 2)
        >>> torch.nn.utils.vector_to_parameters(
        ...     torch.tensor([0.5, 2.5, 3.0, 4.0]), net.parameters()
        ... )
        >>> net.bias.detach()
        tensor([3., 4.])
    """
    if not isinstance(vec, rushlight.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
