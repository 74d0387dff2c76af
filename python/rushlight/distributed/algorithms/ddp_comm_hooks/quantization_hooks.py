"""Communication hooks that send gradients as 8-bit codes, with a scale and a zero point.

Each process has scales and zero points of its own, which travel before its steps; the mean of what
all processes' steps stand for is computed in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import _group
from rushlight.nn import functional

if TYPE_CHECKING:
    from rushlight.distributed import GradBucket, ProcessGroup
    from rushlight.futures import Future


__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]

_STEPS = 255


def _row_scales(rows):
    """For each row a scale and a zero point with which 0 and all its numbers can be said."""
    low, high = rows.float().aminmax(dim=1)
    low, high = low.clamp(max=0), high.clamp(min=0)
    scale = ((high - low) / _STEPS).clamp(min=rushlight.finfo(rushlight.float32).eps)
    return rushlight.stack((scale, (-(low / scale).round()).clamp(0, _STEPS)))


def _steps(rows, scale, zero):
    counts = (rows / scale.unsqueeze(1)).to(rows.dtype).round() + zero.unsqueeze(1)
    return counts.clamp(0, _STEPS).to(rushlight.uint8)


def _values(steps, scale, zero):
    return scale.unsqueeze(1) * (steps.float() - zero.unsqueeze(1))


def _mean(process_group, rows, length):
    """A future of the mean of all processes' rows, as `length` numbers."""
    group = _group(process_group)
    size = group.size()
    own = _row_scales(rows)
    scales = own.new_empty((size, *own.shape))
    group._allgather_base(scales, own)
    sent = _steps(rows, *own)
    steps = sent.new_empty((size, *sent.shape))

    def mean_of(_future):
        total = rushlight.zeros(rows.shape, dtype=rushlight.float32, device=rows.device)
        for theirs, scale in zip(steps, scales, strict=True):
            total += _values(theirs, *scale)
        return total.flatten()[:length] / size

    return group._allgather_base(steps, sent).get_future().then(mean_of)


def quantization_pertensor_hook(
    process_group: ProcessGroup | None, bucket: GradBucket
) -> Future[Any]:
    """Average gradients in 8 bits, with one scale for each bucket.

    Args:
        process_group: the processes; all if None.
        bucket: the gradients, a `GradBucket`.

    For an example see `distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.
    """
    buffer = bucket.buffer()
    return _mean(process_group, buffer.unsqueeze(0), buffer.numel())


def quantization_perchannel_hook(
    process_group: ProcessGroup | None, bucket: GradBucket, bucket_size: int = 512
) -> Future[Any]:
    """Average gradients in 8 bits, with one scale for each `bucket_size` numbers.

    Args:
        process_group: the processes; all if None.
        bucket: the gradients, a `GradBucket`.
        bucket_size: numbers that share a scale.

    For an example see `distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.
    """
    buffer = bucket.buffer()
    rows = functional.pad(buffer, (0, -buffer.numel() % bucket_size)).view(-1, bucket_size)
    return _mean(process_group, rows, buffer.numel())
