"""Hooks that step a `ZeroRedundancyOptimizer` in backward, while other gradients are sent.

A bucket's parameters belong to one process, or pieces of it to several; once the bucket's
gradients are reduced these processes step and give the others the results. All is asked for by the
thread of backward, in the order of buckets, so that every process asks for the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.futures import Future


__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]


def _finish(zero, bucket, future):
    """Steps of a bucket whose reduction is waited for; what sends their results."""
    result = future.wait()
    bucket.set_buffer((result[0] if isinstance(result, (list, tuple)) else result).reshape(-1))
    return zero._step_bucket(bucket)


def _stepping(hook, ddp, zero, shard_buckets, interleaved):
    if not zero._overlap_with_ddp:
        raise ValueError(
            "this hook runs the steps of a ZeroRedundancyOptimizer that was made with "
            "`overlap_with_ddp=True`, which this one was not"
        )
    model_of: Any = weakref.ref(ddp)  # which has the hook
    reduced: list[Any] = []  # buckets whose gradients travel, with their futures
    sent: list[Any] = []  # results that travel

    def finish_reduced():
        for bucket, future in reduced:
            sent.extend(_finish(zero, bucket, future))
        reduced.clear()

    def stepping(state, bucket):
        """`hook`, and steps on what has been reduced."""
        future = hook(state, bucket)
        if bucket.index() == 0 and not zero._owns_buckets:
            model = model_of()
            # PyTorch knows its buckets then: programs count on as many iterations without a step.
            if model.reducer.iterations >= 2 + model.static_graph:
                zero._take_buckets([b.parameters for b in model.reducer.buckets], shard_buckets)
        if not zero._owns_buckets:
            return future
        if interleaved:
            finish_reduced()  # the buckets before, while this one's gradients travel
        reduced.append((bucket, future))
        if bucket.is_last():
            finish_reduced()
            for work in sent:
                work.wait()
            sent.clear()
        return future

    return stepping


def hook_with_zero_step(
    hook: Callable[..., Any], ddp: Any, zero: Any, shard_buckets: bool = False
) -> Callable[..., Future[Any]]:
    """Run `hook`, and the optimiser's steps once backward has computed all gradients.

    The first two iterations, three with `static_graph`, do not step.

    Args:
        hook: a communication hook that reduces gradients.
        ddp: the model that it is for.
        zero: its optimiser, made with `overlap_with_ddp=True`.
        shard_buckets: whether pieces of a bucket belong to several processes, so that all have
            much the same to do; otherwise a bucket belongs to one.

    Raises:
        ValueError: the optimiser was made without `overlap_with_ddp`.

    For an example see `distributed.optim.ZeroRedundancyOptimizer`.
    """
    return _stepping(hook, ddp, zero, shard_buckets, interleaved=False)


def hook_with_zero_step_interleaved(
    hook: Callable[..., Any], ddp: Any, zero: Any, shard_buckets: bool = False
) -> Callable[..., Future[Any]]:
    """Run `hook`, and the step of each bucket when backward reaches the next bucket.

    It has the arguments of `hook_with_zero_step`.

    For an example see `distributed.optim.ZeroRedundancyOptimizer`.
    """
    return _stepping(hook, ddp, zero, shard_buckets, interleaved=True)
