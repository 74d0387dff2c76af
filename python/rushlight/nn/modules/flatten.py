"""Flatten (generated from ops/modules.py) and Unflatten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import Tensor

from ._stateless.flatten import Flatten
from .module import Module

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Flatten", "Unflatten"]


class Unflatten(Module):
    """Splits one dimension into several.

    Args:
        dim: the dimension, an index.
        unflattened_size: the sizes it is split into; one may be -1.

    Shape: (*, n, *), with n the size of `dim`, to (*, *unflattened_size, *).

    Example:
        >>> torch.nn.Unflatten(1, (3, 4))(torch.zeros(2, 12)).shape
        torch.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(
                f"dim must be an int (dims have no names), but found type {type(dim).__name__}"
            )
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, not of type "
                f"{type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but its element {i} has the type "
                    f"{type(size).__name__}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
