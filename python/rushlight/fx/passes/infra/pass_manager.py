"""`PassManager`: passes one behind the other, until nothing changes any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager"]


class PassManager:
    """Runs passes in order.

    Args:
        passes: functions of a GraphModule that give a PassResult, or None.
        constraints: accepted; the order is the list's.
        steps: how often at most; it ends when nothing was changed.
        run_checks_after_each_pass: check the graph behind each.
        suppress_check_failures: go on where a check fails.
    """

    def __init__(
        self,
        passes: list[Callable[[GraphModule], Any]] | None = None,
        constraints: list[Callable[..., bool]] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = list(passes or [])
        self.constraints = list(constraints or [])
        self.steps = 1 if steps is None else steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass: Callable[[GraphModule], Any]) -> None:
        """Puts a pass at the end."""
        self.passes.append(_pass)

    def add_checks(self, check: Callable[[GraphModule], Any]) -> None:
        """Sets what is checked."""
        self.check = check  # type: ignore[method-assign]

    def check(self, module: GraphModule) -> None:
        """The graph is well formed."""
        module.graph.lint()

    def __call__(self, module: GraphModule) -> PassResult:
        modified = False
        for _ in range(self.steps):
            changed = False
            for one in self.passes:
                result = one(module)
                if isinstance(result, PassResult):
                    module, changed = result.graph_module, changed or result.modified
                if self.run_checks_after_each_pass:
                    try:
                        self.check(module)
                    except RuntimeError:
                        if not self.suppress_check_failures:
                            raise
            modified = modified or changed
            if not changed:
                break
        return PassResult(module, modified)
