"""`PassBase`: something that is done with a graph module, with checks around it."""

from __future__ import annotations

import abc
from typing import NamedTuple

from rushlight.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module after a pass, and whether it was changed."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass is called with a module; subclasses write `call`, and checks if they like."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """What the pass does."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises where the pass cannot be used."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises where the pass did not do its work."""
