"""Functions that make a module one of several processes and leave it the module that it is."""

from __future__ import annotations

from rushlight.distributed._composable import fsdp
from rushlight.distributed._composable.contract import contract
from rushlight.distributed._composable.replicate import replicate
from rushlight.distributed.fsdp import fully_shard

__all__ = ["contract", "fsdp", "fully_shard", "replicate"]
