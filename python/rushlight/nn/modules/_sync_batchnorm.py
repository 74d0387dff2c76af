"""Batch normalisation with the statistics of all processes' samples."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight._lazy import later
from rushlight.autograd import Function

distributed = later("rushlight.distributed")

__all__ = ["sync_batch_norm"]


def _everybody(group, tensor):
    """The sum over processes."""
    distributed.all_reduce(tensor, group=group)
    return tensor


class _SyncBatchNorm(Function):
    """Sums over samples are those of all processes, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x, weight, bias, running_mean, running_var, eps, momentum, group):
        channels = x.shape[1]
        dims = [d for d in range(x.dim()) if d != 1]
        shape = [1, channels] + [1] * (x.dim() - 2)
        wide = x.to(rushlight.float64 if x.dtype == rushlight.float64 else rushlight.float32)
        # Sums first, then squares about the common mean: no cancellation.
        first = wide.new_empty(channels + 1)
        first[:channels] = wide.sum(dims)
        first[channels] = x.numel() // channels
        _everybody(group, first)
        count = first[channels]
        mean = first[:channels] / count
        centered = wide - mean.reshape(shape)
        var = _everybody(group, centered.square().sum(dims)) / count
        rstd = (var + eps).rsqrt()
        if running_mean is not None:
            unbiased = var * (count / (count - 1)) if count > 1 else var
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
        normal = centered * rstd.reshape(shape)
        ctx.save_for_backward(normal, rstd, weight, count)
        ctx.dims, ctx.shape, ctx.group, ctx.dtype = dims, shape, group, x.dtype
        out = normal
        if weight is not None:
            out = out * weight.reshape(shape)
        if bias is not None:
            out = out + bias.reshape(shape)
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        normal, rstd, weight, count = ctx.saved_tensors
        dims, shape = ctx.dims, ctx.shape
        wide = grad.to(normal.dtype)
        grad_weight = (wide * normal).sum(dims)
        grad_bias = wide.sum(dims)
        sums = _everybody(ctx.group, rushlight.stack([grad_bias, grad_weight]))
        mean_grad, mean_product = (sums / count).unbind()
        scale = rstd if weight is None else rstd * weight
        grad_x = wide - mean_grad.reshape(shape) - normal * mean_product.reshape(shape)
        grad_x = (grad_x * scale.reshape(shape)).to(ctx.dtype)
        return (
            grad_x,
            None if weight is None else grad_weight.to(weight.dtype),
            None if weight is None else grad_bias.to(weight.dtype),
            None,
            None,
            None,
            None,
            None,
        )


def sync_batch_norm(x, weight, bias, running_mean, running_var, eps, momentum, group):
    """Normalise by the mean and the variance of all processes' samples."""
    if x.numel() == 0 and x.shape[0] != 0:
        raise ValueError("SyncBatchNorm: an input without elements")
    return _SyncBatchNorm.apply(x, weight, bias, running_mean, running_var, eps, momentum, group)
