"""Schedules that move rates and momenta up and down: one cycle, and many.

Public in `lr_scheduler`.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._schedule import (
    LRScheduler,
    _check_counts,
    _check_optimizer,
    _copy_rate,
    _per_group,
    _set,
)

if TYPE_CHECKING:
    from rushlight.optim.optimizer import Optimizer

# ---- what both do to momenta -------------------------------------------------------------------


def _start_momentum(
    schedule: OneCycleLR | CyclicLR, base_momentum: Any, max_momentum: Any, last_epoch: int
) -> tuple[list[Any], list[Any]]:
    """Put a new schedule's groups to their highest momentum; gives lowest and highest ones."""
    optimizer = schedule.optimizer
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    schedule.use_beta1 = "betas" in optimizer.defaults
    lowest = _per_group(optimizer, base_momentum, "values for base_momentum")
    highest = _per_group(optimizer, max_momentum, "values for max_momentum")
    if last_epoch == -1:
        for low, high, group in zip(lowest, highest, optimizer.param_groups, strict=True):
            _set_momentum(group, _copy_rate(high), schedule.use_beta1)
            group["max_momentum"] = _copy_rate(high)
            group["base_momentum"] = _copy_rate(low)
    return lowest, highest


def _set_momentum(group: dict[str, Any], value: Any, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


# ---- one cycle --------------------------------------------------------------------------------


def _cos_between(start: Any, end: Any, part: float) -> Any:
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _line_between(start: Any, end: Any, part: float) -> Any:
    return (end - start) * part + start


class OneCycleLR(LRScheduler):
    """One cycle: from `max_lr / div_factor` up to `max_lr`, then down to almost nothing.

    Rate after t steps: from max_lr / div_factor to max_lr along half a cosine, or a line, in the
        first pct_start of total_steps; then down to max_lr / div_factor / final_div_factor (Smith,
        Topin 2019).
    When to step: after each batch, not after each epoch: `total_steps` counts batches.

    Args:
        max_lr: the highest learning rate, or one for each group.
        total_steps: length of the cycle, or else `epochs` times `steps_per_epoch`.
        pct_start: the fraction of the cycle in which the learning rate increases.
        anneal_strategy: the shape of the curve: "cos" or "linear".
        cycle_momentum: whether the momentum changes inversely, from `max_momentum` to
            `base_momentum`.
        div_factor: the initial rate is `max_lr` over this.
        final_div_factor: the last rate is the initial one over this.
        three_phase: whether the rate returns to the initial one in a phase of its own before the
            last one.
        optimizer: the optimiser whose learning rates are changed.
        epochs: the number of epochs.
        steps_per_epoch: the number of steps in each.
        base_momentum: the lowest momentum.
        max_momentum: the highest momentum.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=5)
        >>> for _ in range(5):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        0.04
        0.9505
        0.6113
        0.1883
        0.0
    """

    __module__ = "rushlight.optim.lr_scheduler"
    use_beta1: bool

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is None and None in (epochs, steps_per_epoch):
            raise ValueError(
                "You must define either total_steps OR (epochs AND steps_per_epoch): OneCycleLR "
                "plans the whole training, and step() follows each batch"
            )
        counts: dict[str, Any] = {"total_steps": total_steps}
        if total_steps is None:
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        _check_counts(**counts)
        self.total_steps = math.prod(counts.values())
        self._schedule_phases = self._phases(pct_start, three_phase)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', not {anneal_strategy!r}"
            )
        self._anneal_func_type = anneal_strategy
        max_lrs = _per_group(optimizer, max_lr, "values for max_lr")
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = _copy_rate(top)
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _start_momentum(self, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    _annealing_cos = staticmethod(_cos_between)
    _annealing_linear = staticmethod(_line_between)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict`; states of old name a function to go by."""
        state = dict(state_dict)
        function = state.pop("anneal_func", None)
        if function is not None:
            state["_anneal_func_type"] = "cos" if function is _cos_between else "linear"
        super().load_state_dict(state)

    def _phases(self, pct_start: float, three_phase: bool) -> Any:
        up = float(pct_start * self.total_steps) - 1
        last = self.total_steps - 1
        if three_phase:
            down = float(2 * pct_start * self.total_steps) - 2
            spans = [
                (up, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (down, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            spans = [
                (up, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (last, "max_lr", "min_lr", "base_momentum", "max_momentum"),
            ]
        keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        return [dict(zip(keys, span, strict=True)) for span in spans]

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}: OneCycleLR ends there. total_steps counts batches, and "
                "step() follows each of them: make it with as many as there will be"
            )
        between = _cos_between if self._anneal_func_type == "cos" else _line_between
        phase, part = self._place_of(step)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            first, last = phase["start_momentum"], phase["end_momentum"]
            for group in groups:
                momentum = between(group[first], group[last], part)
                _set_momentum(group, momentum, self.use_beta1)
        first, last = phase["start_lr"], phase["end_lr"]
        return [between(group[first], group[last], part) for group in groups]

    def _place_of(self, step: Any) -> Any:
        """The phase that a step falls into, and the part of it that is over."""
        start, last = 0.0, self._schedule_phases[-1]
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is last:
                break
            start = end
        return phase, (step - start) / (end - start)


# ---- many -------------------------------------------------------------------------------------


class CyclicLR(LRScheduler):
    """The rate between `base_lr` and `max_lr`, up and down again and again.

    Rate after t steps: base_lr + (max_lr - base_lr) s, with s rising from 0 to 1 in
        step_size_up steps and falling back in step_size_down (Smith 2017).
    When to step: after each batch, not after each epoch.

    Args:
        base_lr: the lowest learning rate, or one for each group.
        max_lr: the highest learning rate, or one for each group.
        step_size_up: steps from the lowest to the highest.
        step_size_down: steps back; as many if None.
        mode: "triangular"; "triangular2" halves each cycle, "exp_range" scales by gamma ** step.
        scale_fn: a function to scale by instead, of the cycle or of the step (`scale_mode`).
        cycle_momentum: whether the momentum changes inversely.
        optimizer: the optimiser whose learning rates are changed.
        gamma: the base of "exp_range".
        scale_mode: "cycle" or "iterations": what `scale_fn` is given.
        base_momentum: the lowest momentum.
        max_momentum: the highest momentum.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.CyclicLR(
        ...     optimizer, base_lr=0.1, max_lr=1.0, step_size_up=2, cycle_momentum=False
        ... )
        >>> for _ in range(5):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        0.1
        0.55
        1.0
        0.55
        0.1
    """

    __module__ = "rushlight.optim.lr_scheduler"
    use_beta1: bool

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _per_group(optimizer, base_lr, "values for base_lr")
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, base_lrs, strict=True):
                _set(group, "lr", low)
        self.max_lrs = _per_group(optimizer, max_lr, "values for max_lr")
        step_size_down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(step_size_down)
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                f"mode is invalid and scale_fn is None: CyclicLR knows 'triangular', "
                f"'triangular2' and 'exp_range', not {mode!r}"
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = _start_momentum(
                self, base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: Any) -> float:
        """The factor on the cycle's height."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [
            low + (high - low) * height * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                _set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser; a function to scale by is left out."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        plain = custom is None or isinstance(custom, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else custom.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict`; a function to scale by stays the schedule's own."""
        state = dict(state_dict)
        saved = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)
