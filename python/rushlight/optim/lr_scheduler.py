"""Learning-rate schedules.

A schedule sets the "lr" of each group of an optimiser; `step()` moves it on, after the optimiser's
own step. Most are recursive: `get_lr` gives the next rates from the present ones, so that rates
that a program changed in between stay changed. `_get_closed_form_lr`, where it exists, gives the
rates of any epoch. The base class stands in `_schedule.py`, what follows a cosine in
`_cosine.py`, what moves momenta too in `_cycles.py`, schedules of schedules in `_composed.py`.
"""

from __future__ import annotations

import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._composed import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from ._cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from ._cycles import CyclicLR, OneCycleLR
from ._schedule import (  # PyTorch has all of them here
    EPOCH_DEPRECATION_WARNING,  # noqa: F401
    LRScheduler,
    _enable_get_lr_call,  # noqa: F401
    _per_group,
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

    Rate after t steps: `lr * lr_lambda(t)`.
    When to step: after each epoch, or after each batch where the arguments count batches.

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

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = _per_group(optimizer, lr_lambda, "lr_lambdas")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
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

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
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

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        return [
            base * fn(self.last_epoch)
            for fn, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(LambdaLR):
    """Multiplies the learning rate by a function of the epoch.

    Rate after t steps: lr times the product of lr_lambda(1) to lr_lambda(t).
    When to step: after each epoch, or after each batch where the arguments count batches.

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

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        if self._is_initial:
            return self._rates()
        return [
            rate * fn(self.last_epoch)
            for fn, rate in zip(self.lr_lambdas, self._rates(), strict=True)
        ]


class StepLR(LRScheduler):
    """Multiplies the learning rate by `gamma` every `step_size` epochs.

    Rate after t steps: `lr * gamma**(t // step_size)`.
    When to step: after each epoch, or after each batch where the arguments count batches.

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

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        times = self.last_epoch // self.step_size
        return [base * self.gamma**times for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by `gamma` at each of the epochs `milestones`.

    Rate after t steps: `lr * gamma**n`, with `n = sum(m <= t for m in milestones)`.
    When to step: after each epoch, or after each batch where the arguments count batches.

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
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        if self.last_epoch not in self.milestones:
            return self._rates()
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [rate * factor for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        milestones = sorted(self.milestones.elements())
        times = bisect_right(milestones, self.last_epoch)
        return [base * self.gamma**times for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the learning rate by `factor` until epoch `total_iters`.

    Rate after t steps: `lr * factor if t < total_iters else lr`.
    When to step: after each epoch, or after each batch where the arguments count batches.

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
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError(
                f"Constant multiplicative factor expected between 0 and 1: factor is {factor}"
            )
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        if self.last_epoch not in (0, self.total_iters):
            return self._rates()
        change = self.factor if self.last_epoch == 0 else 1.0 / self.factor
        return [rate * change for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiplies the learning rate by a factor from `start_factor` to `end_factor` in `total_iters`
    epochs.

    Rate after t steps: `lr * (start_factor + (end_factor - start_factor) * min(t, total_iters) /
        total_iters)`.
    When to step: after each epoch, or after each batch where the arguments count batches.

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
        start_factor: float = 1.0 / 3,
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

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1.0 + rise / before) for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch)
        rise = self.end_factor - self.start_factor
        factor = self.start_factor + rise * done / self.total_iters
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by `gamma` every epoch.

    Rate after t steps: `lr * gamma**t`.
    When to step: after each epoch, or after each batch where the arguments count batches.

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

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        if self._is_initial:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial learning rate times (1 - epoch / total_iters) ** power, zero after that.

    Rate after t steps: `lr * (1 - min(t, total_iters) / total_iters)**power`.
    When to step: after each epoch, or after each batch where the arguments count batches.

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

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [rate * (left / left_before) ** self.power for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch)
        return [base * (1.0 - done / self.total_iters) ** self.power for base in self.base_lrs]
