"""How gradients are exchanged: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "PowerSGDState",
    "batched_powerSGD_hook",
    "powerSGD_hook",
]

PowerSGDState = _refused.kind("PowerSGDState", __name__)
batched_powerSGD_hook = _refused.in_group(
    "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.batched_powerSGD_hook"
)
powerSGD_hook = _refused.in_group(
    "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.powerSGD_hook"
)
