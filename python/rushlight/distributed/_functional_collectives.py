"""Collectives that return their results: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_tensor",
    "all_reduce",
    "all_to_all_single",
    "broadcast",
    "reduce_scatter_tensor",
    "wait_tensor",
]

AsyncCollectiveTensor = _refused.kind("AsyncCollectiveTensor", __name__)
all_gather_tensor = _refused.in_group("torch.distributed._functional_collectives.all_gather_tensor")
all_reduce = _refused.in_group("torch.distributed._functional_collectives.all_reduce")
all_to_all_single = _refused.in_group("torch.distributed._functional_collectives.all_to_all_single")
reduce_scatter_tensor = _refused.in_group(
    "torch.distributed._functional_collectives.reduce_scatter_tensor"
)
wait_tensor = _refused.in_group("torch.distributed._functional_collectives.wait_tensor")
broadcast = _refused.in_group("torch.distributed._functional_collectives.broadcast")
