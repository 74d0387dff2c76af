"""Averages of a model's weights during training, and learning-rate schedules for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor, nn
from rushlight.nn import Module
from rushlight.nn.modules.batchnorm import _BatchNorm

from ._schedule import _copy_rate
from .lr_scheduler import LRScheduler

if TYPE_CHECKING:
    from rushlight.optim.optimizer import Optimizer
    from rushlight.types import Device

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay}: a share between 0 and 1 is expected")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function of (averages, values, count) that moves each average by 1 - decay.

    Args:
        decay: how much of the old average stays.

    Example:
        >>> average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        >>> callable(average)
        True
    """
    _check_decay(decay)

    def ema_update(
        ema_param_list: Sequence[Tensor], current_param_list: Sequence[Tensor], _: Any
    ) -> Any:
        with rushlight.no_grad():
            for average, value in zip(ema_param_list, current_param_list, strict=True):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value, 1 - decay)
                else:
                    average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function of (averages, values, count) that keeps equally weighted averages.

    Example:
        >>> average = torch.optim.swa_utils.get_swa_multi_avg_fn()
        >>> means = [torch.tensor([4.0])]
        >>> average(means, [torch.tensor([8.0])], torch.tensor(1))
        >>> means
        [tensor([6.])]
    """

    def swa_update(
        averaged_param_list: Sequence[Tensor],
        current_param_list: Sequence[Tensor],
        num_averaged: Any,
    ) -> Any:
        with rushlight.no_grad():
            share = 1 / (float(num_averaged) + 1)
            for average, value in zip(averaged_param_list, current_param_list, strict=True):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value, share)
                else:
                    average.copy_(average + (value - average) * share)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function of (average, value, count) that gives the exponential average.

    Args:
        decay: how much of the old average stays.

    Example:
        >>> torch.optim.swa_utils.get_ema_avg_fn(0.9)(torch.tensor(1.0), torch.tensor(2.0), 1)
        tensor(1.1000)
    """
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        with rushlight.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function of (average, value, count) that gives the equally weighted average.

    Example:
        >>> average = torch.optim.swa_utils.get_swa_avg_fn()
        >>> average(torch.tensor(4.0), torch.tensor(8.0), torch.tensor(1))
        tensor(6.)
    """

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        with rushlight.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over training.

    Args:
        model: the model to copy; it is not changed.
        device: the device of the copy.
        avg_fn: gives the new average of (average, value, count).
        multi_avg_fn: updates lists of averages in place; the equally weighted ones by default.
        use_buffers: average buffers, too, instead of copying them.

    Example:
        >>> net = torch.nn.Linear(1, 1)
        >>> averaged = torch.optim.swa_utils.AveragedModel(net)
        >>> averaged.update_parameters(net)
        >>> int(averaged.n_averaged)
        1
    """

    def __init__(
        self,
        model: nn.Module,
        device: Device = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if None not in (avg_fn, multi_avg_fn):
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        copied = deepcopy(model)
        self.module = copied if device is None else copied.to(device)
        self.n_averaged: Any
        count = rushlight.zeros((), dtype=rushlight.int64, device=device)
        self.register_buffer("n_averaged", count)
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged module gives."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: nn.Module) -> None:
        """Add the current parameters of `model` to the averages."""
        own: Iterable[Tensor] = self.module.parameters()
        other: Iterable[Tensor] = model.parameters()
        if self.use_buffers:
            own = itertools.chain(own, self.module.buffers())
            other = itertools.chain(other, model.buffers())
        averages = [p.detach() for p in own]
        values = [p.detach().to(average.device) for p, average in zip(other, averages, strict=True)]
        if int(self.n_averaged) == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            update(averages, values, self.n_averaged)
        if not self.use_buffers:
            for mine, its in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(its.detach().to(mine.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: nn.Module, device: Device = None) -> None:
    """Recompute the running statistics of batch norms over the batches of a loader.

    Args:
        loader: an iterable of inputs, or of batches whose first part is the input.
        model: the model.
        device: where inputs are moved to.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
        >>> torch.optim.swa_utils.update_bn([torch.ones(4, 2)], net)
        >>> net[0].running_mean
        tensor([1., 1.])
    """
    with rushlight.no_grad():
        layers: list[Any] = [m for m in model.modules() if isinstance(m, _BatchNorm)]
        if not layers:
            return
        momenta = [layer.momentum for layer in layers]
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None
        was_training = model.training
        model.train()
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            if device is not None:
                batch = batch.to(device)
            model(batch)
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rates to constant ones.

    Rate after t steps: from lr to swa_lr in anneal_epochs steps, along half a cosine or a line;
        then swa_lr.
    When to step: after each epoch, once weights are averaged.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        swa_lr: the final learning rate, for all groups or one for each.
        anneal_epochs: the number of epochs until the final rate.
        anneal_strategy: the shape of the curve: "cos" or "linear".
        last_epoch: number of steps already done; -1 to begin.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, anneal_epochs=2)
        >>> schedule.get_last_lr()
        [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = (
            swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        )
        if len(rates) != len(optimizer.param_groups):
            raise ValueError(
                "swa_lr must have the same length as optimizer.param_groups: swa_lr has "
                f"{len(rates)}, optimizer.param_groups has {len(optimizer.param_groups)}"
            )
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = _copy_rate(rate)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must by one of 'cos' or 'linear', not {anneal_strategy!r}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, not {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _way(self, t: float) -> float:
        """The part of the way to the last rate at time t in 0..1."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """The learning rates of this epoch."""
        self._warn_if_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._way(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        now = self._way(max(0, min(1, step / max(1, self.anneal_epochs))))
        rates = []
        for group in self.optimizer.param_groups:
            last, lr = group["swa_lr"], group["lr"]
            # Where the way began follows from the present rate.
            first = last if before == 1 else (lr - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates
