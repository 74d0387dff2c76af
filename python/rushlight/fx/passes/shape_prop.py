"""`ShapeProp`: runs a graph and records the sizes and dtypes of all values."""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor, nn
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The metadata of a tensor, without its elements.

    Args:
        shape: the shape.
        dtype: the dtype.
        requires_grad: whether gradients are recorded.
        stride: the strides.
        memory_format: the order of its dimensions in memory; None: another one.
        is_quantized: whether it holds codes.
        qparams: scale and zero point of codes; empty for other tensors.

    Example:
        >>> from rushlight.fx.passes.shape_prop import ShapeProp
        >>> net = torch.fx.symbolic_trace(torch.nn.Linear(4, 2))
        >>> _ = ShapeProp(net).propagate(torch.ones(3, 4))
        >>> *_, output = net.graph.nodes
        >>> output.meta["tensor_meta"].shape
        torch.Size([3, 2])
    """

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    formats = [rushlight.contiguous_format]
    if result.dim() == 4:
        formats.append(rushlight.channels_last)
    if result.dim() == 5:
        formats.append(rushlight.channels_last_3d)
    layout = None
    if include_contiguity:
        layout = next((f for f in formats if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {}
    )


class ShapeProp(Interpreter):
    """Sets `meta["tensor_meta"]` and `meta["type"]` of every node.

    Args:
        gm: the GraphModule.
        fake_mode: run with tensors of this mode, without memory.

    Example:
        >>> from rushlight.fx.passes.shape_prop import ShapeProp
        >>> module = torch.fx.symbolic_trace(torch.nn.Linear(2, 1))
        >>> _ = ShapeProp(module).propagate(torch.ones(3, 2))
        >>> [tuple(node.meta["tensor_meta"].shape) for node in module.graph.nodes][-1]
        (3, 1)
    """

    def __init__(self, gm: nn.Module, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Run a node and record the metadata of its result."""
        result = super().run_node(n)
        found = False

        def note(value: Any) -> Any:
            nonlocal found
            if isinstance(value, Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        known = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = known
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on inputs."""
        if self.fake_mode is None:
            return super().run(*args)
        fake = [self.fake_mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
        with self.fake_mode:
            return super().run(*fake)
