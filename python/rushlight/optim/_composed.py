"""Schedules that are made of others, and the one that waits until a number no longer falls.

Public in `lr_scheduler`.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight._warnings import warn

from ._schedule import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _check_optimizer,
    _set,
)

if TYPE_CHECKING:
    from rushlight.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Lowers the learning rate when a metric stops improving.

    Rate after t steps: lr times factor, each time that the metric has not improved for more than
        `patience` steps.
    When to step: after each epoch, with what is to improve: `step(validation_loss)`.

    Args:
        mode: "min" if a smaller metric is better, "max" if a larger one is.
        factor: the factor of the learning rate.
        patience: the number of epochs without improvement before the rate is reduced.
        threshold: the least improvement that counts, relative ("rel") or absolute ("abs").
        cooldown: epochs to wait after a reduction.
        min_lr: a lower limit on the learning rate, or one for each group.
        eps: smaller changes of the rate are not made.
        optimizer: the optimiser whose learning rates are changed.
        threshold_mode: "rel" or "abs".

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.1]
    """

    __module__ = "rushlight.optim.lr_scheduler"

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] | tuple[float, ...] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, but it is {factor}")
        _check_optimizer(optimizer)
        self.factor, self.optimizer = factor, optimizer
        limits: Any = min_lr
        count, for_all = len(optimizer.param_groups), not isinstance(limits, (list, tuple))
        self.default_min_lr = limits if for_all else None
        if for_all:
            limits = [limits] * count
        elif len(limits) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(limits)}")
        self.min_lrs = list(limits)
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown! ReduceLROnPlateau has 'min' and 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        """Forget what was seen."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: Any = None) -> Any:
        """Take the metric of an epoch, and lower the learning rates if it stopped improving."""
        value = float(metrics)
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        waits = self.in_cooldown
        improves = self.is_better(value, self.best)
        if improves:
            self.best = value
        if waits:
            self.cooldown_counter -= 1
        self.num_bad_epochs = 0 if waits or improves else self.num_bad_epochs + 1
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.num_bad_epochs, self.cooldown_counter = 0, self.cooldown
        self._last_lr = self._rates()

    def _reduce_lr(self, epoch: Any) -> None:
        groups = self.optimizer.param_groups
        if len(self.min_lrs) != len(groups):  # some were added
            if self.default_min_lr is None:
                raise RuntimeError(
                    "ReduceLROnPlateau: the number of param groups in the optimizer is "
                    f"{len(groups)} now, but there are {len(self.min_lrs)} lower limits: set "
                    "`min_lrs` to a list of one for each group"
                )
            self.min_lrs = [self.default_min_lr for _ in groups]
        rates = [float(group["lr"]) for group in groups]
        for group, rate, limit in zip(groups, rates, self.min_lrs, strict=True):
            lower = max(limit, rate * self.factor)
            if rate - lower > self.eps:
                _set(group, "lr", lower)

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction is so recent that bad epochs are not counted."""
        return self.cooldown_counter > 0

    def is_better(self, a: Any, best: Any) -> bool:
        """Whether a metric is better than the best so far, by more than the threshold."""
        if self.mode == "min":
            if self.threshold_mode == "rel":
                return a < best * (1.0 - self.threshold)
            return a < best - self.threshold
        if self.threshold_mode == "rel":
            return a > best * (self.threshold + 1.0)
        return a > best + self.threshold

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict`."""
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


def _check_together(
    owner: LRScheduler, schedulers: Sequence[LRScheduler], optimizer: Optimizer
) -> None:
    """Raise where schedules cannot be the parts of `owner`."""
    name = type(owner).__name__
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(
                f"{name} at index {i} should have an attribute `optimizer`, as schedulers have"
            )
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` (at index {i} of the schedules): its "
                "`step` needs a measure; step it by itself"
            )
        if optimizer is not scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, here "
                f"{type(optimizer).__name__}, but {type(scheduler).__name__} at index {i} belongs "
                f"to another one, {scheduler.optimizer}"
            )


class SequentialLR(LRScheduler):
    """Schedules one after the other; the next one starts at each of the epochs `milestones`.

    Each schedule begins at its own epoch 0. With `last_epoch` the rates are those that this many
    steps and one more lead to.

    Rate after t steps: that of the schedule whose turn it is.
    When to step: after each epoch or batch, as its schedules want; they are not stepped
        themselves.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        schedulers: the schedules, all of one optimiser.
        milestones: where the second and each next one starts.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> warmup = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
        >>> decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        >>> schedule = torch.optim.lr_scheduler.SequentialLR(
        ...     optimizer, [warmup, decay], milestones=[2]
        ... )
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        0.1
        0.1
        1.0
        0.9
    """

    __module__ = "rushlight.optim.lr_scheduler"

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler in its list, which is empty"
            )
        _check_together(self, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR expects number of schedulers to be one more than that of the "
                f"milestones between them, but got {len(schedulers)} and {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.optimizer = optimizer
        # Making the schedules moved the rates; start from the first one again.
        self._wait()
        self._give(self._initial_rates())
        self._start()
        with warnings.catch_warnings():  # of steps without the optimiser's
            warnings.simplefilter("ignore")
            for _ in range(last_epoch + 1):
                self.step()

    def _index(self) -> int:
        return bisect_right(self._milestones, self.last_epoch)

    def _initial_rates(self) -> list[Any]:
        return self._schedulers[bisect_right(self._milestones, 0)]._initial_rates()

    def _wait(self) -> None:
        self.last_epoch = -1
        for scheduler in self._schedulers:
            scheduler._wait()

    def _start(self) -> None:
        self._begin(lambda scheduler: scheduler._start())

    def _take_over(self) -> None:
        self._begin(lambda scheduler: scheduler._take_over())

    def _begin(self, how: Callable[[LRScheduler], Any]) -> None:
        self.last_epoch = 0
        self._move(self._schedulers[self._index()], how)

    def _move(self, scheduler: LRScheduler, how: Callable[[LRScheduler], Any]) -> None:
        how(scheduler)
        self._last_lr = self._rates()

    def step(self) -> None:
        """Advance by one epoch."""
        self.last_epoch += 1
        index = self._index()
        takes_over = index > 0 and self._milestones[index - 1] == self.last_epoch
        self._move(
            self._schedulers[index],
            lambda scheduler: scheduler._take_over() if takes_over else scheduler.step(),
        )

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimiser, with the states of the schedules."""
        state = {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("optimizer", "_schedulers")
        }
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict`."""
        state = dict(state_dict)
        schedulers = state.pop("_schedulers")
        self.__dict__.update(state)
        for own, saved in zip(self._schedulers, schedulers, strict=True):
            own.load_state_dict(saved)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: each step advances all of them.

    A `SequentialLR` among them is a factor on what the others make of the rates: it is stepped
    with rates of its own, its `get_last_lr()`.

    Rate after t steps: that of the last schedule, which begins from what the others have set in
        this step.
    When to step: after each epoch or batch; its schedules are not stepped themselves.

    Args:
        schedulers: the schedules, all of one optimiser.
        optimizer: their optimiser; that of the first if None.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> warmup = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
        >>> decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        >>> torch.optim.lr_scheduler.ChainedScheduler([warmup, decay]).get_last_lr()
        [0.1]
    """

    __module__ = "rushlight.optim.lr_scheduler"

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler, but the list is empty"
            )
        optimizer = optimizer or schedulers[0].optimizer
        _check_together(self, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._rates()
        has_sequence = any(isinstance(s, SequentialLR) for s in schedulers)
        if has_sequence and all(getattr(s, "last_epoch", 0) == 0 for s in schedulers):
            # Making a sequence put the rates back to its own first ones.
            self._take_over()

    def _initial_rates(self) -> list[Any]:
        return self._schedulers[0]._initial_rates()

    def _wait(self) -> None:
        for scheduler in self._schedulers:
            scheduler._wait()

    def _start(self) -> None:
        for scheduler in self._schedulers:
            if isinstance(scheduler, SequentialLR):
                self._as_factor(scheduler._initial_rates(), scheduler._start)
            else:
                scheduler._start()
        self._last_lr = self._rates()

    def _take_over(self) -> None:
        self._give(self._initial_rates())
        self._start()

    def _as_factor(self, own: Any, move: Callable[[], Any]) -> None:
        """Let a schedule move rates of its own, and the groups' rates by as much."""
        rates = self._rates()
        self._give(own)
        move()
        moved = self._rates()
        self._give(
            [
                new if rate == old or old == 0 else rate * (new / old)
                for rate, old, new in zip(rates, own, moved, strict=True)
            ]
        )

    def step(self) -> None:
        """Advance all schedules by one epoch."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, SequentialLR):
                self._as_factor(scheduler.get_last_lr(), scheduler.step)
            else:
                scheduler.step()
        self._last_lr = self._rates()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict
