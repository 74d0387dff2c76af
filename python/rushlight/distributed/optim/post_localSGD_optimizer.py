"""An optimiser after whose steps parameters are averaged over processes."""

from __future__ import annotations

from typing import Any

from rushlight._warnings import warn
from rushlight.distributed.algorithms.model_averaging.averagers import ModelAverager
from rushlight.optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Steps as another optimiser does, then lets an averager average parameters if it is time.

    Together with `post_localSGD_hook`, which leaves gradients local from the iteration on at which
    the averager begins.

    Args:
        optim: the optimiser.
        averager: says when parameters are averaged, and among whom.
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
        """The optimiser's state, and as `step` how often the averager was asked."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` gave; one without `step` lets the averager begin at 0."""
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warn(
                "the state dict has no step counter for an averager, which begins at 0 therefore",
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure: Any = None) -> Any:
        """One step, and the average of parameters where it is time for that."""
        loss = self.optim.step(closure)
        self.averager.average_parameters(self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """No gradients, or zeros."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters for the optimiser."""
        self.optim.add_param_group(param_group)
