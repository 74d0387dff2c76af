"""Functions that make masked tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.masked.maskedtensor.core import AsMasked, MaskedTensor

if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Any, mask: Tensor, requires_grad: bool = False) -> Tensor:
    """A masked tensor with copies of `data` and `mask`; it is a leaf, as `tensor(data)` is.

    Args:
        data: a tensor of a real dtype, strided, sparse COO or sparse CSR.
        mask: a bool tensor of the same layout and shape (and, where sparse, the same indices); True
            where an element takes part.
        requires_grad: whether gradients are recorded for it; they are masked tensors, too.

    Raises:
        TypeError: one of the two is no plain tensor, their layouts differ, or a layout or dtype is
            not supported.
        ValueError: their shapes or indices differ.

    Example:
        >>> torch.masked.masked_tensor(torch.tensor([5.0, 6.0]), torch.tensor([True, False]))
        MaskedTensor(
          [  5.0000,       --]
        )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Tensor) -> Tensor:
    """A masked tensor on the memory of `data` and `mask`; gradients flow to `data`.

    Shapes, layouts and errors are those of `masked_tensor`.

    Args:
        data: a tensor of a real dtype.
        mask: a bool tensor of the same layout and shape; True where an element takes part.

    Example:
        >>> x = torch.tensor([5.0, 6.0], requires_grad=True)
        >>> torch.masked.as_masked_tensor(x, torch.tensor([True, False])).sum()
        MaskedTensor(  5.0000, True)
    """
    return AsMasked.apply(data, mask)
