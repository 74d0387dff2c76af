"""`FakeTensorProp`: runs a graph without memory and keeps what each node gives."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Sets `meta["val"]` of every node to a tensor without memory, or to what else it gives.

    Args:
        module: the module.
        mode: of the tensors; a new one if not given.
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """Runs a node and keeps what it gives."""
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
        """Runs on inputs, of which the sizes and dtypes count."""
        fake = [self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
        return self.propagate_dont_convert_inputs(*fake)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Runs on inputs that are of the mode already."""
        with self._mode:
            return super().run(*args)
