"""BatchNorm of 1, 2 and 3 dimensions, SyncBatchNorm, and their common base with InstanceNorm."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import rushlight
from rushlight import _C, Tensor

from .. import functional as F
from .. import init
from ..parameter import new_parameter
from .module import Module
from .utils import _documented

if TYPE_CHECKING:
    from rushlight.distributed import ProcessGroup
    from rushlight.types import Device

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """Settings, parameters and running statistics; `_version` 2 counts the batches."""

    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats

        made = {"device": device, "dtype": dtype}
        self.register_parameter("weight", new_parameter(num_features, affine, **made))
        self.register_parameter("bias", new_parameter(num_features, affine and bias, **made))
        if track_running_stats:
            mean = rushlight.zeros(num_features, **made)
            var = rushlight.ones(num_features, **made)
            count = rushlight.tensor(0, dtype=rushlight.int64, device=device)
            state = {"running_mean": mean, "running_var": var, "num_batches_tracked": count}
        else:
            state = {}
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, state.get(name))
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and `reset_running_stats`."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            count = self.num_batches_tracked
            if count is None or count.is_meta:
                count = rushlight.tensor(0, dtype=rushlight.int64)
            state_dict.setdefault(prefix + "num_batches_tracked", count)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Normalises each channel over the batch, or by the running statistics in evaluation.

    Formula: (x - mean) / sqrt(variance + eps) * weight + bias, of each channel (Ioffe, Szegedy
        2015).

    Args:
        num_features: number of channels, the input's dimension 1.
        eps: added to the variance.
        momentum: weight of a batch in the running statistics; None for their plain mean.
        affine: whether a scale `weight` and a shift `bias` are learnt.
        track_running_stats: without, evaluation too uses the batch's statistics.
        device: where parameters live; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.
        bias: whether the shift is learnt, too.
    """

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        tracking = self.training and self.track_running_stats
        if tracking and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        mean, var = self.running_mean, self.running_var
        from_batch = self.training or (mean is None and var is None)
        # In training without tracking, running statistics that exist are left alone.
        used = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            mean if used else None,
            var if used else None,
            self.weight,
            self.bias,
            from_batch,
            momentum,
            self.eps,
        )


def _check(input: Tensor, *dimensions: int) -> None:
    if input.dim() not in dimensions:
        allowed = " or ".join(f"{d}D" for d in dimensions)
        raise ValueError(f"expected {allowed} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    __doc__ = _documented(
        _BatchNorm,
        """Shape: (N, C) or (N, C, L).

        Example:
            >>> torch.nn.BatchNorm1d(3)(torch.zeros(2, 3)).shape
            torch.Size([2, 3])
        """,
    )

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = _documented(
        _BatchNorm,
        """Shape: (N, C, H, W).

        Example:
            >>> torch.nn.BatchNorm2d(3)(torch.zeros(2, 3, 4, 4)).shape
            torch.Size([2, 3, 4, 4])
        """,
    )

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 4)


class BatchNorm3d(_BatchNorm):
    __doc__ = _documented(
        _BatchNorm,
        """Shape: (N, C, D, H, W).

        Example:
            >>> torch.nn.BatchNorm3d(3)(torch.zeros(2, 3, 2, 2, 2)).shape
            torch.Size([2, 3, 2, 2, 2])
        """,
    )

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 5)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm whose training statistics are computed over all processes of a group.

    Alone, and in evaluation, it computes what `BatchNorm` computes, for any number of dimensions.

    Args:
        num_features: the number of channels.
        eps: added to the variance.
        momentum: the weight of the newest statistics; None: their plain average.
        affine: whether factors and shifts of channels are learnt.
        track_running_stats: whether statistics for evaluation are kept.
        process_group: the processes; all of them if None.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.
        bias: whether there is a bias.

    Shape: (N, C, *) to the same.

    Example:
        >>> torch.nn.SyncBatchNorm(3).eval()(torch.zeros(2, 3, 4)).shape
        torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: ProcessGroup | None = None,
        device: Device = None,
        dtype: _C.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor):
        distributed = sys.modules.get("rushlight.distributed")
        of_batch = self.training or self.running_mean is None
        if (
            distributed is None
            or not of_batch
            or not distributed.is_initialized()
            or distributed.get_world_size(self.process_group) <= 1
        ):
            return super().forward(input)
        from ._sync_batchnorm import sync_batch_norm

        self._check_input_dim(input)
        momentum = self.momentum or 0.0
        tracks = self.training and self.track_running_stats
        if tracks and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        return sync_batch_norm(
            input,
            self.weight,
            self.bias,
            self.running_mean if tracks else None,
            self.running_var if tracks else None,
            self.eps,
            momentum,
            self.process_group,
        )

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with every BatchNorm in it replaced by this class, parameters shared."""
        own = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            names = ("num_features", "eps", "momentum", "affine", "track_running_stats")
            settings = {name: getattr(module, name) for name in names}
            own = cls(**settings, process_group=process_group)
            shared = ("running_mean", "running_var", "num_batches_tracked", "training")
            for name in ("weight", "bias", *shared) if module.affine else shared:
                setattr(own, name, getattr(module, name))
        for name, child in module.named_children():
            own.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return own
