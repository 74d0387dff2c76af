"""`PassManager`: runs passes one after the other until nothing changes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rushlight import nn
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

_Pass = Callable[..., Any]
_Constraint = Callable[[_Pass, _Pass], bool]


def _name_of(one: _Pass) -> str:
    return getattr(one, "__name__", None) or type(one).__name__


def pass_result_wrapper(fn: _Pass) -> _Pass:
    """Convert a pass that changes its module and returns None to one that returns a PassResult.

    Args:
        fn: the pass.

    Example:
        >>> from rushlight.fx.passes.infra.pass_manager import pass_result_wrapper
        >>> def recompile(module):
        ...     module.recompile()
        >>> net = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> type(pass_result_wrapper(recompile)(net)).__name__
        'PassResult'
    """

    @functools.wraps(fn, updated=())
    def wrapper(gm: GraphModule) -> PassResult:
        result = fn(gm)
        return result if isinstance(result, PassResult) else PassResult(gm, True)

    if not inspect.isfunction(fn):
        wrapper.__name__ = _name_of(fn)
    return wrapper


def this_before_that_pass_constraint(this: _Pass, that: _Pass) -> _Constraint:
    """The constraint that `this` comes before `that`.

    Args:
        this: a pass.
        that: another one.

    For an example see `fx.passes.pass_manager.PassManager`.
    """

    def holds(a: _Pass, b: _Pass) -> bool:
        return not (a == that and b == this)

    return holds


def _validate_pass_schedule_constraint(constraint: _Constraint, passes: list[_Pass]) -> None:
    """RuntimeError if an order breaks a constraint."""
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1 :], i + 1):
            if not constraint(a, b):
                raise RuntimeError(
                    "pass schedule constraint violated. Expected "
                    f"{_name_of(b)} before {_name_of(a)}, but found them at {j} and {i}"
                )


def _topological_sort_passes(passes: list[_Pass], constraints: list[_Constraint]) -> list[_Pass]:
    """An order of passes in which the constraints hold; as given where there are none.

    Raises:
        RuntimeError: if there is no such order.
    """
    if not constraints:
        return passes
    behind: dict[int, list[int]] = {i: [] for i in range(len(passes))}
    waiting = dict.fromkeys(range(len(passes)), 0)
    for i, a in enumerate(passes):
        for j, b in enumerate(passes):
            if i != j and not all(constraint(b, a) for constraint in constraints):
                behind[i].append(j)
                waiting[j] += 1
    ready = [i for i, count in waiting.items() if count == 0]
    order: list[int] = []
    while ready:
        i = ready.pop(0)
        order.append(i)
        for j in behind[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(j)
    left = [passes[i] for i in range(len(passes)) if i not in order]
    if left:
        raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
    return [passes[i] for i in order]


class PassManager:
    """Runs passes in order.

    Args:
        passes: functions of a GraphModule that give a PassResult.
        constraints: functions of two passes, false where the first must not come before the other.
        steps: the maximum number of rounds; the passes end earlier once nothing changes.
        run_checks_after_each_pass: run the check behind each, not only in the end.
        suppress_check_failures: go on where the check fails.

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import make_fx
        >>> from rushlight.fx.passes.cse_pass import CSEPass
        >>> from rushlight.fx.passes.infra.pass_manager import PassManager
        >>> net = make_fx(lambda x: x.sin() * x.sin())(torch.ones(2))
        >>> result = PassManager(passes=[CSEPass()], steps=3)(net)
        >>> str(result.graph_module.graph).count("aten.sin")
        1
    """

    def __init__(
        self,
        passes: list[_Pass] | None = None,
        constraints: list[_Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = list(passes or [])
        self.constraints = list(constraints or [])
        self.steps = 1 if steps is None else steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: _Pass) -> None:
        """Append a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: _Constraint) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise RuntimeError if the order breaks a constraint."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def solve_constraints(self) -> None:
        """Order the passes so that they satisfy the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[nn.Module], Any]) -> None:
        """Set the check function.

        Raises:
            TypeError: if it does not take one argument.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign]

    def check(self, module: nn.Module) -> None:
        """Run the checks: none, unless `add_checks` was called."""

    def _run_checks(self, module: nn.Module) -> None:
        try:
            self.check(module)
        except Exception:
            if not self.suppress_check_failures:
                raise

    def __call__(self, module: GraphModule) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self._run_checks(module)
        modified = False
        for _ in range(self.steps):
            changed = False
            for i, one in enumerate(self.passes):
                try:
                    result = one(module)
                    if not isinstance(result, PassResult):
                        raise TypeError(
                            f"The result of the pass {_name_of(one)} should be type PassResult. "
                            "pass_result_wrapper makes such a pass of it"
                        )
                except Exception as error:
                    before = [_name_of(p) for p in self.passes[:i]]
                    raise RuntimeError(
                        f"An error occurred when running the '{_name_of(one)}' pass after the "
                        f"following passes: {before}: {error}"
                    ) from error
                module, changed = result.graph_module, changed or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self._run_checks(module)
            if not self.run_checks_after_each_pass:
                self._run_checks(module)
            modified = modified or changed
            if not changed:
                break
        return PassResult(module, modified)
