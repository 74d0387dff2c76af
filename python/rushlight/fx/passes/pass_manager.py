"""`PassManager`: runs functions one after the other, in an order with constraints."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

from rushlight.fx.passes.infra.pass_manager import (
    _validate_pass_schedule_constraint,
    this_before_that_pass_constraint,
)

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

_logger = logging.getLogger(__name__)


def inplace_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its first argument, which `fn` changes.

    Args:
        fn: the function.

    For an example see `fx.passes.pass_manager.PassManager`.
    """

    @functools.wraps(fn)
    def call_and_return_module(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return call_and_return_module


def log_hook(fn: Callable[..., Any], level: int = logging.INFO) -> Callable[..., Any]:
    """A function that logs the result of `fn` and returns it.

    Args:
        fn: the function.
        level: of the messages, as `logging` has it.

    For an example see `fx.passes.pass_manager.PassManager`.
    """

    @functools.wraps(fn)
    def call_and_log(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        _logger.log(level, "Ran pass %s\n Return value: %s", fn, result)
        return result

    return call_and_log


def loop_pass(
    base_pass: Callable[[Any], Any],
    n_iter: int | None = None,
    predicate: Callable[[Any], bool] | None = None,
) -> Callable[[Any], Any]:
    """A pass that runs another `n_iter` times, or while `predicate` of the result is true.

    Args:
        base_pass: the pass.
        n_iter: how many times.
        predicate: a function of the result.

    Raises:
        AssertionError: if not exactly one of the two is given.

    Example:
        >>> from rushlight.fx.passes.pass_manager import loop_pass
        >>> loop_pass(lambda n: n * 2, n_iter=3)(1)
        8
    """
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @functools.wraps(base_pass)
    def again(source: Any) -> Any:
        if predicate is None:
            for _ in range(n_iter or 0):
                source = base_pass(source)
            return source
        while predicate(source):
            source = base_pass(source)
        return source

    return again


def these_before_those_pass_constraint(
    these: Callable[..., Any], those: Callable[..., Any]
) -> Callable[..., bool]:
    """The constraint that passes wrapping `these` come before passes wrapping `those`.

    Args:
        these: a function that passes wrap.
        those: another one.

    For an example see `fx.passes.pass_manager.PassManager`.
    """

    def holds(a: Callable[..., Any], b: Callable[..., Any]) -> bool:
        return not (inspect.unwrap(a) == those and inspect.unwrap(b) == these)

    return holds


class PassManager:
    """Runs passes in order if the order satisfies the constraints.

    Args:
        passes: functions that take the result of the previous one.
        constraints: functions of two passes, false where the first must not come before the other.

    Example:
        >>> from rushlight.fx.passes.pass_manager import PassManager
        >>> PassManager([lambda n: n + 1, lambda n: n * 2])(3)
        8
    """

    def __init__(
        self,
        passes: list[Callable[..., Any]] | None = None,
        constraints: list[Callable[..., bool]] | None = None,
    ) -> None:
        self.passes = list(passes or [])
        self.constraints = list(constraints or [])
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Callable[..., Any]]) -> PassManager:
        """Make a manager of a list of passes."""
        return cls(passes)

    def add_pass(self, _pass: Callable[..., Any]) -> None:
        """Append a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., bool]) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Remove the passes with these names."""
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Callable[..., Any], _replacement: Callable[..., Any]) -> None:
        """Replace the pass of the same name."""
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Raise RuntimeError if the order breaks a constraint."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for one in self.passes:
            source = one(source)
        return source
