"""Collectives that gradients pass through: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

all_gather = _refused.in_group("torch.distributed.nn.functional.all_gather")
all_reduce = _refused.in_group("torch.distributed.nn.functional.all_reduce")
all_to_all = _refused.in_group("torch.distributed.nn.functional.all_to_all")
all_to_all_single = _refused.in_group("torch.distributed.nn.functional.all_to_all_single")
broadcast = _refused.in_group("torch.distributed.nn.functional.broadcast")
gather = _refused.in_group("torch.distributed.nn.functional.gather")
reduce = _refused.in_group("torch.distributed.nn.functional.reduce")
reduce_scatter = _refused.in_group("torch.distributed.nn.functional.reduce_scatter")
scatter = _refused.in_group("torch.distributed.nn.functional.scatter")
