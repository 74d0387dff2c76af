"""When parameters are averaged over processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from rushlight._warnings import warn
from rushlight.distributed import _world
from rushlight.distributed.algorithms.model_averaging import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters over the processes of a group; `step` counts its calls.

    Args:
        process_group: the processes; all by default.

    For an example see `distributed.algorithms.model_averaging.averagers.PeriodicModelAverager`.
    """

    def __init__(self, process_group: Any = None):
        self.process_group = _world._group(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Called after each step of an optimiser, with parameters or its groups."""


class PeriodicModelAverager(ModelAverager):
    """Averages every few steps, after a number of warm-up steps.

    Args:
        period: how many steps.
        warmup_steps: the steps at the beginning.
        process_group: the processes; all by default.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> from rushlight.distributed.algorithms.model_averaging.averagers import (
        ...     PeriodicModelAverager,
        ... )
        >>> averager = PeriodicModelAverager(period=4)
        >>> averager.average_parameters(torch.nn.Linear(2, 1).parameters())
        >>> averager.step
        1
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warn(
                "period=1 averages parameters in each step, which costs as much as "
                "DistributedDataParallel does for gradients: use that alone",
            )
        self.period = period
        self.warmup_steps = warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average the parameters that have gradients, if a period is over."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
