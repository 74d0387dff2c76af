"""`LRScheduler`, the base of learning rate schedules, and what they share.

Public in `lr_scheduler`.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from functools import wraps
from typing import Any

from rushlight import Tensor
from rushlight._warnings import warn

from .optimizer import Optimizer


def _check_optimizer(optimizer: Optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"{type(optimizer).__name__} is not an Optimizer: a schedule changes the rates of one, "
            "such as SGD(model.parameters(), lr=0.1)"
        )


def _check_counts(**counts: Any) -> None:
    """ValueError where one of these settings is no positive integer."""
    for name, value in counts.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")


EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` is deprecated: call it without, which moves on by "
    "one epoch."
)


def _copy_rate(value: Any) -> Any:
    """A rate by itself: tensors are copied, numbers are as they are."""
    return value.clone() if isinstance(value, Tensor) else value


def _set(group: dict[str, Any], name: str, value: Any) -> None:
    """Store a setting; a tensor keeps being the same tensor."""
    if isinstance(group[name], Tensor):
        group[name].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def _count_steps(optimizer: Optimizer) -> None:
    """Let the optimiser note that its `step` was called, for the warning about the order."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    reference = weakref.ref(optimizer)
    method: Any = optimizer.step
    step = method.__func__

    @wraps(step)
    def count_step(*args: Any, **kwargs: Any) -> Any:
        owner: Any = reference()
        owner._opt_called = True
        return step(owner, *args, **kwargs)

    vars(count_step)["_wrapped_by_lr_sched"] = True
    setattr(optimizer, "step", count_step)  # noqa: B010


@contextlib.contextmanager
def _enable_get_lr_call(scheduler: LRScheduler) -> Iterator[Any]:
    """While the block runs, `get_lr` is asked as `step` asks it."""
    scheduler._get_lr_called_within_step = True
    try:
        yield scheduler
    finally:
        scheduler._get_lr_called_within_step = False


class LRScheduler:
    """The base class of learning-rate schedules.

    Rate after t steps: what `get_lr` of a subclass returns.
    When to step: after each epoch or batch, always after the optimiser's own `step()`.

    Args:
        optimizer: the optimiser whose learning rates are changed.
        last_epoch: number of steps already done; -1 to start from the groups' present rates.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> isinstance(
        ...     torch.optim.lr_scheduler.StepLR(optimizer, 2), torch.optim.lr_scheduler.LRScheduler
        ... )
        True
    """

    __module__ = "rushlight.optim.lr_scheduler"
    _is_initial = False
    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy_rate(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}]: a schedule with "
                    f"last_epoch={last_epoch} needs it; load the optimizer's state first"
                )
        self.base_lrs = [_copy_rate(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    # How a schedule is a part of others (`SequentialLR`, `ChainedScheduler`).

    def _initial_rates(self) -> list[Any]:
        """The rates of its epoch 0, before it has done anything to them."""
        return self.base_lrs

    def _wait(self) -> None:
        """Undo that it has begun, but for the rates."""
        self.last_epoch = -1

    def _start(self) -> None:
        """Begin at epoch 0 with the groups' present rates."""
        self._wait()
        self._initial_step()

    def _take_over(self) -> None:
        """Begin at epoch 0 with the initial rates, if it can tell them from the present ones."""
        self._update_lr(0)

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule without the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rates that the last step set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rates of the current epoch; `step` calls it."""
        raise NotImplementedError

    def _warn_if_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn(
                f"{type(self).__name__}.get_lr() computes the next rates, for step() alone: "
                "to get the last learning rate, call get_last_lr()"
            )

    def _rates(self) -> list[Any]:
        return [_copy_rate(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch: Any = None) -> None:
        """Advance by one epoch (or to `epoch`, which is deprecated) and set the learning rates."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warn(
                "`optimizer.step()` has been overridden since the schedule was made, which can no "
                "longer see that it is called before `lr_scheduler.step()`, as it should be"
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: they should be "
                "called in the opposite order, else the first value of the schedule is skipped.",
            )

    def _update_lr(self, epoch: Any = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            self._set_rates(self.get_lr)
        else:
            self.last_epoch = epoch
            self._set_rates(getattr(self, "_get_closed_form_lr", self.get_lr))

    def _give(self, rates: Any) -> None:
        """Give each group its rate."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            _set(group, "lr", rate)

    def _set_rates(self, rates: Any) -> None:
        """Give the groups what the function `rates` returns."""
        with _enable_get_lr_call(self):
            values = rates()
        self._give(values)
        self._last_lr = self._rates()


def _per_group(optimizer: Optimizer, value: Any, what: str) -> list[Any]:
    """A list with a value for each group."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copy_rate(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(f"Expected {count} {what}, but got {len(value)}")
    return [_copy_rate(v) for v in value]
