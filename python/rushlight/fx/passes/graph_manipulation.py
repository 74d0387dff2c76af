"""Replacement of nodes' targets, and sizes of nodes' results."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


class size_bytes(NamedTuple):
    """The bytes of a node's result, without and with its parameters and buffers.

    Args:
        output_size: of the result.
        total_size: with parameters and buffers.

    For an example see `fx.passes.graph_manipulation.get_size_of_all_nodes`.
    """

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Replace the op and the target of nodes and keep their arguments.

    Args:
        fx_module: the module, changed in place.
        old_op, old_target: of nodes that change.
        new_op, new_target: what they get.

    For an example see `fx.passes.graph_manipulation.get_size_of_all_nodes`.
    """
    for node in list(fx_module.graph.nodes):
        if node.op == old_op and node.target == old_target:
            with fx_module.graph.inserting_before(node):
                new = fx_module.graph.create_node(
                    new_op,
                    new_target,
                    map_arg(node.args, lambda used: used),
                    dict(map_arg(node.kwargs, lambda used: used)),
                    node.name,
                )
            node.replace_all_uses_with(new)
            fx_module.graph.erase_node(node)
    fx_module.recompile()


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Tensor] | None = None) -> None:
    """Set `size_bytes` of all nodes but the output; `args` are inputs for finding shapes.

    Args:
        fx_module: the module.
        args: inputs, for which shapes are found.

    Example:
        >>> from rushlight.fx.passes.graph_manipulation import get_size_of_all_nodes
        >>> module = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> get_size_of_all_nodes(module, [torch.ones(3)])
        >>> [node.size_bytes.output_size for node in module.graph.nodes if node.op[0] == "c"]
        [12]
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)  # type: ignore[attr-defined]


def get_tensor_meta(node: Node) -> TensorMetadata:
    """The metadata of the tensor that a node returns.

    Args:
        node: the node.

    Raises:
        RuntimeError: if nothing is: run `ShapeProp` first.

    For an example see `fx.passes.shape_prop.ShapeProp`.
    """
    known = node.meta.get("tensor_meta")
    if not known:
        raise RuntimeError(
            f"Node {node} has no tensor metadata; ShapeProp(module).propagate(inputs) gives it some"
        )
    return known


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a node's result, without and with the parameters and buffers that it uses.

    Args:
        fx_module: the module.
        node: the node.

    For an example see `fx.passes.graph_manipulation.get_size_of_all_nodes`.
    """
    total = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(node.target)
        total += sum(t.nbytes for t in (*module.parameters(), *module.buffers()))
    meta = get_tensor_meta(node)
    output = meta.dtype.itemsize * meta.shape.numel()
    return size_bytes(output, total + output)
