"""`PassBase`: a pass over a graph module, with checks before and after it."""

from __future__ import annotations

import abc
from typing import NamedTuple

from rushlight.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it.

    Args:
        graph_module: the module after the pass.
        modified: whether it was changed.

    For an example see `fx.passes.infra.pass_base.PassBase`.
    """

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """The base of passes: subclasses define `call`, and optionally checks.

    Example:
        >>> from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
        >>> class Tanhs(PassBase):
        ...     def call(self, module):
        ...         found = [n for n in module.graph.nodes if n.target is torch.relu]
        ...         for node in found:
        ...             node.target = torch.tanh
        ...         module.recompile()
        ...         return PassResult(module, bool(found))
        >>> made = Tanhs()(torch.fx.symbolic_trace(lambda x: torch.relu(x)))
        >>> made.modified, made.graph_module(torch.zeros(2))
        (True, tensor([0., 0.]))
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Run the pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise if the pass cannot be used."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise if the pass did not work."""
