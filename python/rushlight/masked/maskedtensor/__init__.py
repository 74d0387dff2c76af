"""Tensors with a mask for their elements: `MaskedTensor` and its functions."""

from __future__ import annotations

from rushlight._lazy import lazy
from rushlight.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from rushlight.masked.maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

with lazy(__name__):
    from rushlight.masked.maskedtensor import binary, reductions, unary  # noqa: F401
