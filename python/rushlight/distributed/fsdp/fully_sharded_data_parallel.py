"""Modules whose parameters are spread over processes: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused
from rushlight.distributed.fsdp import api
from rushlight.distributed.fsdp.api import *  # noqa: F403

__all__ = ["FullyShardedDataParallel"]
__all__ += api.__all__

FullyShardedDataParallel = _refused.kind(
    "FullyShardedDataParallel",
    __name__,
    **{
        name: staticmethod(_refused.function(f"{__name__}.FullyShardedDataParallel.{name}"))
        for name in (
            "fsdp_modules",
            "full_optim_state_dict",
            "load_optim_state_dict",
            "optim_state_dict",
            "optim_state_dict_to_load",
            "rekey_optim_state_dict",
            "scatter_full_optim_state_dict",
            "set_state_dict_type",
            "shard_full_optim_state_dict",
            "state_dict_type",
            "summon_full_params",
        )
    },
)
