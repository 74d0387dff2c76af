"""How gradients are exchanged; that of local SGD refuses."""

from __future__ import annotations

from rushlight.distributed.algorithms.ddp_comm_hooks import (
    default_hooks,
    post_localSGD_hook,
    powerSGD_hook,
)

__all__ = ["default_hooks", "post_localSGD_hook", "powerSGD_hook"]
