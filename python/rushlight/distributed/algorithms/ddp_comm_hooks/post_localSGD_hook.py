"""Local SGD: gradients are reduced at first, later within subgroups or not at all.

Lin, Stich, Patel, Jaggi: "Don't use large mini-batches, use local SGD", 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight
from rushlight.distributed import _making
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

if TYPE_CHECKING:
    from rushlight.distributed import GradBucket, ProcessGroup
    from rushlight.futures import Future


__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The state of the hook between buckets.

    Args:
        process_group: who reduces gradients at first; all by default.
        subgroup: who does later; by default the processes of a machine.
        start_localSGD_iter: the iteration at which that begins.
        post_local_gradient_allreduce: whether subgroups reduce at all.

    For an example see
    `distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.post_localSGD_hook`.
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        subgroup: ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ):
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket):
        """Count an iteration if this bucket is its last."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Any]:
    """Average gradients over all processes at first, then over the subgroup or not at all.

    Args:
        state: who averages, from when on.
        bucket: the gradients, a `GradBucket`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> from rushlight.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> state = local.PostLocalSGDState(None, None, start_localSGD_iter=100)
        >>> model.register_comm_hook(state, local.post_localSGD_hook)
        >>> torch.distributed.destroy_process_group()
    """
    everybody = state.iter < state.start_localSGD_iter
    if everybody:
        state.maybe_increase_iter(bucket)
    elif not state.post_local_gradient_allreduce:
        kept = rushlight.futures.Future()
        kept.set_result(bucket.buffer())
        return kept
    elif state.subgroup is None:
        state.subgroup = _making.new_subgroups()[0]
    return allreduce_hook(state.process_group if everybody else state.subgroup, bucket)
