"""What ops do with nested, masked and quantised tensors: a table of rules for each kind of tensor.

A rule is found by the name of the op and gets the called function first. The classes name their
table by `later`, for rules need the classes. Batches of `vmap` have their rules in C++
(src/ops/batching.cpp), sparse tensors too (docs/sparse.md), distributed ones in
`distributed.tensor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Rules"]


class Rules(dict[str, Callable[..., Any]]):
    """The name of an op → its rule."""

    def rule(self, names: str) -> Callable[..., Any]:
        """Says that a function is the rule of these ops, whose names are separated by spaces."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self.update(dict.fromkeys(names.split(), function))
            return function

        return enter
