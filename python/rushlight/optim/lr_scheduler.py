"""Learning-rate schedules.

A schedule sets the "lr" of each group of an optimiser; `step()` moves it on, after the optimiser's
own step. Most are recursive: `get_lr` gives the next rates from the present ones, so that rates
that a program changed in between stay changed. `_get_closed_form_lr`, where it exists, gives the
rates of any epoch. The base class stands in `_schedule.py`, `OneCycleLR` and `CyclicLR` in
`_cycles.py`.
"""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from rushlight._warnings import warn

from ._cycles import CyclicLR, OneCycleLR
from ._schedule import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _check_counts,
    _check_optimizer,
    _enable_get_lr_call,  # noqa: F401
    _per_group,
    _set,
)

if TYPE_CHECKING:
    from rushlight.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_LRScheduler = LRScheduler


class LambdaLR(LRScheduler):
    """Sets the learning rate to its initial value times a function of the epoch.

    Args:
        lr_lambda: the function, or one for each group.
        optimizer: the optimiser whose learning rates are changed.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        1.0
        0.5
        0.25
        0.125
    """

    lr_lambdas: list[Any]

    def __init__(self, optimizer: Optimizer, lr_lambda, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = _per_group(optimizer, lr_lambda, "lr_lambdas")
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """The state without the optimiser; functions are left out, callable objects give their
        dicts.
        """
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else fn.__dict__.copy()
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]):
        """Load a state from `state_dict`; functions stay the schedule's own."""
        state = dict(state_dict)
        functions = state.pop("lr_lambdas")
        if len(functions) != len(self.lr_lambdas):
            raise ValueError(
                f"{type(self).__name__} has {len(self.lr_lambdas)} functions, one for each group, "
                f"but the state is of {len(functions)}: load it where there are as many groups"
            )
        self.__dict__.update(state)
        for own, saved in zip(self.lr_lambdas, functions, strict=True):
            if saved is not None:
                own.__dict__.update(saved)

    def get_lr(self):
        self._warn_if_outside_step()
        return [
            base * fn(self.last_epoch)
            for fn, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(LambdaLR):
    """Multiplies the learning rate by a function of the epoch.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        lr_lambda: the function, or one for each group.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        1.0
        0.5
        0.25
        0.125
    """

    def get_lr(self):
        self._warn_if_outside_step()
        if self._is_initial:
            return self._rates()
        return [
            rate * fn(self.last_epoch)
            for fn, rate in zip(self.lr_lambdas, self._rates(), strict=True)
        ]


class StepLR(LRScheduler):
    """Multiplies the learning rate by `gamma` every `step_size` epochs.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        step_size: the number of epochs between changes.
        gamma: the factor.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        1.0
        1.0
        0.1
        0.1
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self):
        times = self.last_epoch // self.step_size
        return [base * self.gamma**times for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by `gamma` at each of the epochs `milestones`.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        milestones: the epochs, in ascending order.
        gamma: the factor.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.1)
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        1.0
        0.1
        0.1
        0.01
    """

    def __init__(
        self, optimizer: Optimizer, milestones, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_outside_step()
        if self.last_epoch not in self.milestones:
            return self._rates()
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [rate * factor for rate in self._rates()]

    def _get_closed_form_lr(self):
        milestones = sorted(self.milestones.elements())
        times = bisect_right(milestones, self.last_epoch)
        return [base * self.gamma**times for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the learning rate by `factor` until epoch `total_iters`.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        factor: the factor.
        total_iters: the epoch from which the factor is gone.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        0.5
        0.5
        1.0
        1.0
    """

    def __init__(
        self, optimizer: Optimizer, factor=1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError(
                f"Constant multiplicative factor expected between 0 and 1: factor is {factor}"
            )
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_outside_step()
        if self.last_epoch not in (0, self.total_iters):
            return self._rates()
        change = self.factor if self.last_epoch == 0 else 1.0 / self.factor
        return [rate * change for rate in self._rates()]

    def _get_closed_form_lr(self):
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiplies the learning rate by a factor from `start_factor` to `end_factor` in `total_iters`
    epochs.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        start_factor: the first factor.
        end_factor: the last factor.
        total_iters: the number of epochs.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.LinearLR(
        ...     optimizer, start_factor=0.25, total_iters=3
        ... )
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        0.25
        0.5
        0.75
        1.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor=1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be above 0 and at most 1, but "
                f"start_factor is {start_factor}"
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError(
                f"Ending multiplicative factor expected between 0 and 1: end_factor is {end_factor}"
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_outside_step()
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1.0 + rise / before) for rate in self._rates()]

    def _get_closed_form_lr(self):
        done = min(self.total_iters, self.last_epoch)
        rise = self.end_factor - self.start_factor
        factor = self.start_factor + rise * done / self.total_iters
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by `gamma` every epoch.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        gamma: the factor.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        1.0
        0.9
        0.81
        0.729
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_outside_step()
        if self._is_initial:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial learning rate times (1 - epoch / total_iters) ** power, zero after that.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        total_iters: the number of epochs.
        power: the exponent.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        1.0
        0.75
        0.5
        0.25
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [rate * (left / left_before) ** self.power for rate in self._rates()]

    def _get_closed_form_lr(self):
        done = min(self.total_iters, self.last_epoch)
        return [base * (1.0 - done / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial learning rate to `eta_min` in `T_max` epochs, then back, and
    so on.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        T_max: the number of epochs of half a cosine.
        eta_min: the lowest learning rate.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> for _ in range(5):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        1.0
        0.8536
        0.5
        0.1464
        0.0
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_outside_step()
        if self._is_initial:
            return self._rates()
        epoch, half = self.last_epoch, self.T_max
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - half) % (2 * half) == 0:
            # Right after the minimum the ratio below would divide zero by zero.
            return [
                rate + (base - self.eta_min) * (1 - math.cos(math.pi / half)) / 2
                for base, rate in zip(self.base_lrs, self._rates(), strict=True)
            ]
        ratio = (1 + math.cos(math.pi * epoch / half)) / (
            1 + math.cos(math.pi * (epoch - 1) / half)
        )
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in self._rates()]

    def _get_closed_form_lr(self):
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine to `eta_min` in `T_0` epochs, then again with `T_mult` times as many.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        T_0: the number of epochs of the first cycle.
        T_mult: how many times longer each next cycle is.
        eta_min: the lowest learning rate.
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> for _ in range(4):
        ...     print(round(schedule.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     schedule.step()
        1.0
        0.5
        1.0
        0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        _check_counts(T_0=T_0)
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min!r}")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_if_outside_step()
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch=None):
        """Advance by one epoch, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            self.last_epoch += 1
            self._advance()
        else:
            self._place(epoch or 0)
            self.last_epoch = math.floor(epoch or 0)
        self._set_rates(self.get_lr)

    def _advance(self):
        """Go one epoch on in the period, or to the next period where it is over."""
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult

    def _take_over(self):
        self.step(0)

    def _place(self, epoch):
        """Set the period that an epoch falls into and the place in it."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n


class ReduceLROnPlateau(LRScheduler):
    """Lowers the learning rate when a metric stops improving.

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

    def _init_is_better(self, mode, threshold, threshold_mode):
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self):
        """Forget what was seen."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics, epoch=None):
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

    def _reduce_lr(self, epoch):
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
    def in_cooldown(self):
        """Whether the last reduction is so recent that bad epochs are not counted."""
        return self.cooldown_counter > 0

    def is_better(self, a, best):
        """Whether a metric is better than the best so far, by more than the threshold."""
        if self.mode == "min":
            if self.threshold_mode == "rel":
                return a < best * (1.0 - self.threshold)
            return a < best - self.threshold
        if self.threshold_mode == "rel":
            return a > best * (self.threshold + 1.0)
        return a > best + self.threshold

    def load_state_dict(self, state_dict: dict[str, Any]):
        """Load a state from `state_dict`."""
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


def _check_together(owner, schedulers, optimizer):
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

    def __init__(self, optimizer: Optimizer, schedulers, milestones, last_epoch: int = -1) -> None:
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

    def _index(self):
        return bisect_right(self._milestones, self.last_epoch)

    def _initial_rates(self):
        return self._schedulers[bisect_right(self._milestones, 0)]._initial_rates()

    def _wait(self):
        self.last_epoch = -1
        for scheduler in self._schedulers:
            scheduler._wait()

    def _start(self):
        self._begin(lambda scheduler: scheduler._start())

    def _take_over(self):
        self._begin(lambda scheduler: scheduler._take_over())

    def _begin(self, how):
        self.last_epoch = 0
        self._move(self._schedulers[self._index()], how)

    def _move(self, scheduler, how):
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

    def state_dict(self):
        """The state without the optimiser, with the states of the schedules."""
        state = {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("optimizer", "_schedulers")
        }
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]):
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

    def __init__(self, schedulers, optimizer: Optimizer | None = None) -> None:
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

    def _initial_rates(self):
        return self._schedulers[0]._initial_rates()

    def _wait(self):
        for scheduler in self._schedulers:
            scheduler._wait()

    def _start(self):
        for scheduler in self._schedulers:
            if isinstance(scheduler, SequentialLR):
                self._as_factor(scheduler._initial_rates(), scheduler._start)
            else:
                scheduler._start()
        self._last_lr = self._rates()

    def _take_over(self):
        self._give(self._initial_rates())
        self._start()

    def _as_factor(self, own, move):
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
