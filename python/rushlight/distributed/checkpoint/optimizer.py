"""States of optimisers spread over files: the name, which refuses."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "load_sharded_optimizer_state_dict",
]

load_sharded_optimizer_state_dict = _refused.function(
    "torch.distributed.checkpoint.optimizer.load_sharded_optimizer_state_dict"
)
