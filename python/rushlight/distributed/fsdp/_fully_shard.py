"""Parameters spread over processes module by module: the names, which refuse."""

from __future__ import annotations

import dataclasses
from typing import Any

from rushlight.distributed import _refused

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]

FSDPModule = _refused.kind("FSDPModule", __name__)
UnshardHandle = _refused.kind("UnshardHandle", __name__)
fully_shard = _refused.function("torch.distributed.fsdp.fully_shard")
register_fsdp_forward_method = _refused.function(
    "torch.distributed.fsdp.register_fsdp_forward_method"
)


@dataclasses.dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, of gradients as they are added up, and of outputs."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclasses.dataclass
class OffloadPolicy:
    """Parameters stay on their device."""


@dataclasses.dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in the CPU's memory."""

    pin_memory: bool = True
