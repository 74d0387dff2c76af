"""LayerNorm, GroupNorm, RMSNorm, LocalResponseNorm: normalisation without running statistics."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from rushlight import _C, Tensor

from .. import functional as F
from .. import init
from ..parameter import new_parameter
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight.types import Device

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _shape(normalized_shape) -> Any:
    if isinstance(normalized_shape, numbers.Integral):
        return (normalized_shape,)
    return tuple(normalized_shape)


class _AffineNorm(Module):
    """What ends with a learnt scale `weight` and shift `bias`, each of which may be absent."""

    def _register_affine(self, shape, device, dtype, **wanted):
        for name, exists in wanted.items():
            made = new_parameter(shape, exists, device=device, dtype=dtype)
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        for name, start in (("weight", init.ones_), ("bias", init.zeros_)):
            parameter = self._parameters.get(name)
            if parameter is not None:
                start(parameter)


class LayerNorm(_AffineNorm):
    """Normalises over the last dimensions, then scales and shifts.

    Formula: (x - mean) / sqrt(variance + eps) * weight + bias, over the last dimensions (Ba et al.
        2016).

    Args:
        normalized_shape: sizes of the last dimensions; an int for one.
        eps: added to the variance.
        elementwise_affine: whether `weight` (and `bias`) of that shape are learnt.
        bias: whether a shift is learnt, too.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: (*, *normalized_shape) to the same.

    Example:
        >>> torch.nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).detach()
        tensor([[-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape: tuple[int, ...] = _shape(normalized_shape)
        shape = self.normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._register_affine(
            shape, device, dtype, weight=elementwise_affine, bias=elementwise_affine and bias
        )

    def forward(self, input: Tensor):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(_AffineNorm):
    """Normalises groups of channels of each sample, then scales and shifts each channel.

    Formula: (x - mean) / sqrt(variance + eps) * weight + bias, over the channels of a group (Wu,
        He 2018).

    Args:
        num_groups: number of groups; it divides the number of channels.
        num_channels: size of the input's dimension 1.
        eps: added to the variance.
        affine: whether `weight` (and `bias`) of shape (num_channels) are learnt.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.
        bias: whether a shift is learnt, too.

    Shape: (N, num_channels, *) to the same.

    Example:
        >>> torch.nn.GroupNorm(2, 4)(torch.zeros(1, 4, 8)).shape
        torch.Size([1, 4, 8])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups}): "
                "GroupNorm has groups of as many channels each"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._register_affine(num_channels, device, dtype, weight=affine, bias=affine and bias)

    def forward(self, input: Tensor):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_AffineNorm):
    """Divides by the root mean square over the last dimensions, then scales.

    Formula: x / sqrt(mean(x^2) + eps) * weight (Zhang, Sennrich 2019).

    Args:
        normalized_shape: sizes of the last dimensions; an int for one.
        eps: added to the mean square; the dtype's machine epsilon if None.
        elementwise_affine: whether `weight` of that shape is learnt.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: (*, *normalized_shape) to the same.

    Example:
        >>> torch.nn.RMSNorm(2)(torch.tensor([[3.0, 4.0]])).detach()
        tensor([[0.8485, 1.1314]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape: tuple[int, ...] = _shape(normalized_shape)
        shape = self.normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._register_affine(shape, device, dtype, weight=elementwise_affine)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LocalResponseNorm(Module):
    """x over (k + alpha * the mean square of `size` neighbouring channels) to the power beta.

    Args:
        size: the number of channels.
        alpha: the factor of the mean square.
        beta: the power.
        k: the constant.

    Shape: (N, C, *) to the same.

    Example:
        >>> torch.nn.LocalResponseNorm(2)(torch.ones(1, 4, 3)).shape
        torch.Size([1, 4, 3])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of (N, C, H, W), under its old name.

    Args:
        size: the number of channels.
        alpha: the factor of the mean square.
        beta: the power.
        k: the constant.

    Shape: (N, C, H, W) to the same.

    Example:
        >>> torch.nn.CrossMapLRN2d(2)(torch.ones(1, 4, 3, 3)).shape
        torch.Size([1, 4, 3, 3])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)
