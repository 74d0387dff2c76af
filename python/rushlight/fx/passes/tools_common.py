"""Helpers of passes: questions about nodes, and sorting of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rushlight import Tensor, nn
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, _get_qualified_name

__all__ = [
    "CALLABLE_NODE_OPS",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

Tensors: TypeAlias = tuple[Tensor, ...] | list[Tensor]
TensorOrTensors: TypeAlias = Tensor | Tensors
NodeList: TypeAlias = list[Node]
NodeSet: TypeAlias = set[Node]
Names: TypeAlias = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """The name of a function or class, after the last part of its module's name.

    Args:
        k: the function or class.

    For an example see `fx.passes.tools_common.get_node_target`.
    """
    if isinstance(k, str):
        return k
    module = (getattr(k, "__module__", "") or "").replace("torch._ops", "torch.ops")
    if module and "acc_ops" in module:
        return f"acc_ops.{k.__name__}"
    return f"{module}.{k.__name__}"


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """The name of a node's target: a module's class, a function's full name, a method's name.

    Args:
        submodules: modules by dotted names.
        node: the node.

    Raises:
        AssertionError: if the node calls nothing.

    Example:
        >>> from rushlight.fx.passes.tools_common import get_node_target
        >>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> node = next(n for n in module.graph.nodes if n.op == "call_module")
        >>> get_node_target(dict(module.named_modules()), node)
        'rushlight.nn.modules.activation.ReLU'
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {sorted(CALLABLE_NODE_OPS)}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        target: Any = node.target
        module = getattr(target, "__module__", None)
        return _get_qualified_name(target) if module else target.__name__
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node returns a tensor, given its `meta["type"]` (see `ShapeProp`).

    Args:
        node: the node.

    For an example see `fx.passes.shape_prop.ShapeProp`.
    """
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, Tensor)


def _in_order(gm: GraphModule, next_of: Any) -> GraphModule:
    """Puts nodes behind those that they use.

    Raises:
        RuntimeError: if some use each other.
    """
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    graph: Graph = Graph()
    copies: dict[Node, Node] = {}
    ready = [node for node, count in waiting.items() if count == 0]
    place = {node: i for i, node in enumerate(gm.graph.nodes)}
    while ready:
        node = ready.pop(next_of(ready, place))
        copies[node] = graph.node_copy(node, lambda used: copies[used])
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    if len(copies) < len(waiting):
        left = [node for node in waiting if node not in copies]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Sort the nodes of a module topologically, in place; nodes without inputs come first.

    Args:
        gm: the module.

    For an example see `fx.passes.tools_common.stable_topological_sort`.
    """
    return _in_order(gm, lambda ready, place: 0)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Sort the nodes of a module topologically; independent nodes keep their order.

    Args:
        gm: the module.

    Example:
        >>> from rushlight.fx.passes.tools_common import stable_topological_sort
        >>> module = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> stable_topological_sort(module) is module
        True
    """
    return _in_order(gm, lambda ready, place: ready.index(min(ready, key=place.__getitem__)))
