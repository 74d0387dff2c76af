"""States of spread modules and optimisers: the names, which refuse."""

from __future__ import annotations

import dataclasses

from rushlight.distributed import _refused

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclasses.dataclass
class StateDictOptions:
    """How states are gathered and spread."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


get_model_state_dict = _refused.function(
    "torch.distributed.checkpoint.state_dict.get_model_state_dict"
)
get_optimizer_state_dict = _refused.function(
    "torch.distributed.checkpoint.state_dict.get_optimizer_state_dict"
)
get_state_dict = _refused.function("torch.distributed.checkpoint.state_dict.get_state_dict")
set_model_state_dict = _refused.function(
    "torch.distributed.checkpoint.state_dict.set_model_state_dict"
)
set_optimizer_state_dict = _refused.function(
    "torch.distributed.checkpoint.state_dict.set_optimizer_state_dict"
)
set_state_dict = _refused.function("torch.distributed.checkpoint.state_dict.set_state_dict")
