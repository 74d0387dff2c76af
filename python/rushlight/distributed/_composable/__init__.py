"""Parameters spread over processes module by module, by an old name."""

from __future__ import annotations

from rushlight.distributed._composable import fsdp
from rushlight.distributed.fsdp import fully_shard

__all__ = ["fsdp", "fully_shard"]
