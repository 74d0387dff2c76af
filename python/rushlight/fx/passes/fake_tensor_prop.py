"""`FakeTensorProp`: runs a graph on fake tensors and keeps the result of each node."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Sets `meta["val"]` of every node to its fake tensor or other value.

    Args:
        module: the module.
        mode: of the tensors; a new one if not given.

    Example:
        >>> from rushlight.fx.passes.fake_tensor_prop import FakeTensorProp
        >>> net = torch.fx.symbolic_trace(lambda x: x @ x.T)
        >>> _ = FakeTensorProp(net).propagate(torch.ones(3, 4))
        >>> [node.meta["val"].shape for node in net.graph.nodes if node.op == "output"]
        [torch.Size([3, 3])]
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """Run a node and keep its result."""
        result = super().run_node(n)
        found = False

        def keep(value: Any) -> Any:
            nonlocal found
            found = found or isinstance(value, FakeTensor | int | float | bool)
            return value.detach() if isinstance(value, FakeTensor) else value

        kept = map_aggregate(result, keep)
        if found:
            n.meta["val"] = kept
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on inputs, of which only sizes and dtypes matter."""
        fake = [self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
        return self.propagate_dont_convert_inputs(*fake)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph on inputs that are fake tensors already."""
        with self._mode:
            return super().run(*args)
