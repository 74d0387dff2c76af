"""Schedules along half a period of the cosine, once or again and again.

Public in `lr_scheduler`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ._schedule import (
    LRScheduler,
    _check_counts,
)

if TYPE_CHECKING:
    from rushlight.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial learning rate to `eta_min` in `T_max` epochs, then back, and
    so on.

    Rate after t steps: `eta_min + (lr - eta_min) * (1 + cos(pi * t / T_max)) / 2` (Loshchilov,
        Hutter 2017).
    When to step: after each epoch, or after each batch where the arguments count batches.

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

    __module__ = "rushlight.optim.lr_scheduler"

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
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

    def _get_closed_form_lr(self) -> list[Any]:
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine to `eta_min` in `T_0` epochs, then again with `T_mult` times as many.

    Rate after t steps: eta_min + (lr - eta_min) (1 + cos(pi s / T)) / 2, with s the steps since
        the last restart and T the length of that period: T_0, T_0 T_mult, … (Loshchilov, Hutter
        2017).
    When to step: after each epoch, or after each batch with a fraction:
        `step(epoch + batch / batches)`.

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

    __module__ = "rushlight.optim.lr_scheduler"

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

    def get_lr(self) -> list[Any]:
        self._warn_if_outside_step()
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch: Any = None) -> Any:
        """Advance by one epoch, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            self.last_epoch += 1
            self._advance()
        else:
            self._place(epoch or 0)
            self.last_epoch = math.floor(epoch or 0)
        self._set_rates(self.get_lr)

    def _advance(self) -> Any:
        """Go one epoch on in the period, or to the next period where it is over."""
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult

    def _take_over(self) -> None:
        self.step(0)

    def _place(self, epoch: Any) -> Any:
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
