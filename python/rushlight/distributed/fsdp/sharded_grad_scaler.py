"""Gradient scaling for sharded gradients."""

from __future__ import annotations

from typing import Any

from rushlight.amp import GradScaler
from rushlight.distributed import _world
from rushlight.distributed._kinds import ReduceOp

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A `GradScaler` that skips a step in all processes if one of them has found a gradient that is
    not finite.

    Args:
        device: the type of the device of the losses.
        init_scale: the first factor of losses.
        backoff_factor: what the factor is multiplied by after a gradient that is not finite.
        growth_factor: what it is multiplied by after `growth_interval` steps without one.
        growth_interval: how many steps that are.
        enabled: False scales nothing.
        process_group: the processes that share what they find; None for all.

    Example:
        >>> from rushlight.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
        >>> ShardedGradScaler("cpu", init_scale=4.0).scale(torch.tensor(2.0))
        tensor(8.)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(
            device,
            init_scale=init_scale,
            backoff_factor=backoff_factor,
            growth_factor=growth_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        self.process_group = process_group

    def unscale_(self, optimizer) -> None:
        """Divide the gradients by the scale; all processes share what they find."""
        super().unscale_(optimizer)
        if not self._enabled:
            return
        found = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        group = _world._group(self.process_group)
        for flag in found.values():
            group.allreduce([flag], op=ReduceOp.MAX).wait()
