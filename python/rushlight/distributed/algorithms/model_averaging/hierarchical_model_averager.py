"""Averaging of parameters in groups of several sizes, more often in smaller ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rushlight._warnings import warn
from rushlight.distributed import _making
from rushlight.distributed.algorithms.model_averaging import averagers, utils

if TYPE_CHECKING:
    from rushlight.distributed import ProcessGroup


__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages in groups of several sizes; if several are due, in the largest.

    Args:
        period_group_size_dict: by period, smallest first, the size of groups; the last is that of
            all.
        warmup_steps: the steps at the beginning in which nothing is averaged.
        process_group: all processes that take part.

    For an example see `distributed.algorithms.model_averaging.averagers.PeriodicModelAverager`.
    """

    def __init__(
        self,
        period_group_size_dict: dict[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: ProcessGroup | None = None,
    ):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self._periods = list(period_group_size_dict)
        sizes = list(period_group_size_dict.values())
        if self._periods[0] <= 0:
            raise ValueError(
                "The minimum period in arg ``period_group_size_dict`` must be a positive value."
            )
        if self._periods[-1] == 1:
            warn(
                "the longest period in period_group_size_dict is 1: DistributedDataParallel's "
                "gradients cost no more than averages in each step",
            )
        total = self.process_group.size()
        if sizes[-1] != total:
            raise ValueError(
                f"The last value in arg ``period_process_group_dict`` {sizes[-1]} must be equal to "
                f"the size of arg ``process_group`` {total}."
            )
        self.warmup_steps = warmup_steps
        self.period_process_group_dict: dict[int, Any] = {}
        for period, size in period_group_size_dict.items():
            group = self.process_group
            if size != total:
                group, _ = _making.new_subgroups(group_size=size, group=self.process_group)
            self.period_process_group_dict[period] = group

    def _find_process_group(self):
        for period in reversed(self._periods):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average the parameters that have gradients, if a period of a group is over."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
