"""InstanceNorm of 1, 2 and 3 spatial dimensions: each channel of each sample by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C, Tensor
from rushlight._warnings import warn

from .. import functional as F
from .batchnorm import _check, _NormBase
from .utils import _documented

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """Normalises each channel of each sample over its spatial dimensions.

    Formula: (x - mean) / sqrt(variance + eps) * weight + bias, of each channel of a sample
        (Ulyanov et al. 2016).

    Args:
        num_features: number of channels.
        eps: added to the variance.
        momentum: weight of a batch in the running statistics.
        affine: whether a scale `weight` and a shift `bias` are learnt.
        track_running_stats: keep running statistics and use them in evaluation.
        device: where parameters live; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.
        bias: whether the shift is learnt, too.
    """

    _batched_dim = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: _C.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _apply_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _get_no_batch_dim(self) -> int:
        return self._batched_dim - 1

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, self._get_no_batch_dim(), self._batched_dim)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batched = input.dim() == self._batched_dim
        channels = input.size(1 if batched else 0)
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={1 if batched else 0} to match num_features "
                    f"({self.num_features}), but it is {channels}"
                )
            warn(
                f"{type(self).__name__}: the input has {channels} channels where num_features is "
                f"{self.num_features}, which means nothing without affine=True",
            )
        if batched:
            return self._apply_norm(input)
        return self._apply_norm(input.unsqueeze(0)).squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _documented(
        _InstanceNorm,
        """Shape: (N, C, L) or (C, L).

        Example:
            >>> torch.nn.InstanceNorm1d(3)(torch.zeros(2, 3, 4)).shape
            torch.Size([2, 3, 4])
        """,
    )
    _batched_dim = 3


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _documented(
        _InstanceNorm,
        """Shape: (N, C, H, W) or (C, H, W).

        Example:
            >>> torch.nn.InstanceNorm2d(3)(torch.zeros(2, 3, 4, 4)).shape
            torch.Size([2, 3, 4, 4])
        """,
    )
    _batched_dim = 4


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _documented(
        _InstanceNorm,
        """Shape: (N, C, D, H, W) or (C, D, H, W).

        Example:
            >>> torch.nn.InstanceNorm3d(3)(torch.zeros(2, 3, 2, 2, 2)).shape
            torch.Size([2, 3, 2, 2, 2])
        """,
    )
    _batched_dim = 5
