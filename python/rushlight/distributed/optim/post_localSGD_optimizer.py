"""An optimiser that averages parameters over processes after its steps."""

from __future__ import annotations

from typing import Any

from rushlight._warnings import warn
from rushlight.distributed.algorithms.model_averaging.averagers import ModelAverager
from rushlight.optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Steps another optimiser, then averages parameters if a period is over.

    Together with `post_localSGD_hook`, which leaves gradients local from the iteration on at which
    the averager begins.

    Args:
        optim: the optimiser.
        averager: says when parameters are averaged, and among whom.

    For an example see
    `distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.post_localSGD_hook`.
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager):
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    @property
    def state(self) -> Any:
        """The state of the optimiser."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The optimiser's state; its `step` counts the averager's calls."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict`; without `step` the averager begins at 0."""
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warn(
                "the state dict has no step counter for an averager, which begins at 0 therefore",
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure: Any = None) -> Any:
        """Step the optimiser, and average parameters if a period is over."""
        loss = self.optim.step(closure)
        self.averager.average_parameters(self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients, or set them to zero."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters to the optimiser."""
        self.optim.add_param_group(param_group)
