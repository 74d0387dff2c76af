"""Communication hooks that average the gradients of a bucket, uncompressed or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight

if TYPE_CHECKING:
    from rushlight.distributed import GradBucket, ProcessGroup
    from rushlight.futures import Future


__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _group(process_group):
    from rushlight.distributed import _world

    return _world._group(process_group)


def _mean(process_group, tensor):
    """A future of the mean over the processes."""
    group = _group(process_group)
    tensor.div_(group.size())
    return group.allreduce([tensor]).get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average the gradients over all processes.

    Args:
        process_group: the processes; all if None.
        bucket: the gradients, a `GradBucket`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, default_hooks.allreduce_hook)
        >>> model(torch.ones(1, 2)).sum().backward()
        >>> model.module.weight.grad
        tensor([[1., 1.]])
        >>> torch.distributed.destroy_process_group()
    """
    return _mean(process_group, bucket.buffer())


def _compress(process_group, bucket, dtype):
    buffer = bucket.buffer()

    def write_back(future):
        buffer.copy_(future.value())
        return buffer

    return _mean(process_group, buffer.to(dtype)).then(write_back)


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average the gradients in float16, with half of the bytes.

    Args:
        process_group: the processes; all if None.
        bucket: the gradients, a `GradBucket`.

    For an example see `distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.
    """
    return _compress(process_group, bucket, rushlight.float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average the gradients in bfloat16, with half of the bytes.

    Args:
        process_group: the processes; all if None.
        bucket: the gradients, a `GradBucket`.

    For an example see `distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.
    """
    return _compress(process_group, bucket, rushlight.bfloat16)


def _wrapper(hook, dtype):
    def compress(state, bucket):
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))

        def write_back(future):
            value = future.value()
            buffer.copy_(value[0] if isinstance(value, (list, tuple)) else value)
            return buffer

        return hook(state, bucket).then(write_back)

    return compress


def fp16_compress_wrapper(hook: Callable[..., Any]) -> Callable[..., Future[Any]]:
    """Run `hook` on gradients in float16.

    Args:
        hook: a communication hook.

    For an example see `distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.
    """
    return _wrapper(hook, rushlight.float16)


def bf16_compress_wrapper(hook: Callable[..., Any]) -> Callable[..., Future[Any]]:
    """Run `hook` on gradients in bfloat16.

    Args:
        hook: a communication hook.

    For an example see `distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.
    """
    return _wrapper(hook, rushlight.bfloat16)
