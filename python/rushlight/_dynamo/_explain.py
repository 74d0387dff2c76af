"""`explain`: what `compile` does with one call of a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rushlight import _C


@dataclass
class ExplainOutput:
    """What one call of a compiled function was made of.

    Attributes:
        chains: passes over memory that computed pointwise ops.
        steps: pointwise ops that were noted.
        unseen: results of those that were never written.
        bytes_left: bytes of these results, that were neither written nor read again.
        graph_count: 1: the program is taken whole, as Python runs it.
        graph_break_count: 0.
        op_count: the same as `steps`.
    """

    chains: int
    steps: int
    unseen: int
    bytes_left: int
    graph_count: int = 1
    graph_break_count: int = 0

    @property
    def op_count(self) -> int:
        return self.steps

    def __str__(self) -> str:
        chains = "1 chain" if self.chains == 1 else f"{self.chains} chains"
        steps = "1 step" if self.steps == 1 else f"{self.steps} steps"
        unseen = "1 result was" if self.unseen == 1 else f"{self.unseen} results were"
        return f"{chains} of {steps}; {unseen} never written ({self.bytes_left} bytes)"


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Return a function that calls `f` once, compiled, and says what was noted.

    Args:
        f: a function or a module.
        extra_args: arguments, for the old form `explain(f, x)`, which calls at once.
        extra_kwargs: keywords of that.

    Example:
        >>> print(torch._dynamo.explain(lambda x: torch.relu(x * 2 + 1))(torch.ones(10_000)))
        1 chain of 3 steps; 2 results were never written (80000 bytes)
    """

    def call(*args: Any, **kwargs: Any) -> ExplainOutput:
        before = _C._chain_counts()
        _C._call_noted(f, *args, **kwargs)
        counts = [after - b for after, b in zip(_C._chain_counts(), before, strict=True)]
        return ExplainOutput(*counts)

    return call(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else call
