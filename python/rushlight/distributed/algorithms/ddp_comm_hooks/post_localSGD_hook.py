"""How gradients are exchanged: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "PostLocalSGDState",
    "post_localSGD_hook",
]

PostLocalSGDState = _refused.kind("PostLocalSGDState", __name__)
post_localSGD_hook = _refused.in_group(
    "torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.post_localSGD_hook"
)
