"""Types of items of containers."""

from __future__ import annotations

import operator
from typing import Any, get_args, get_origin

from rushlight.fx.graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Set the types of nodes that read an item of a tuple, list, dict or named tuple.

    Args:
        graph: the graph, changed in place.

    Example:
        >>> from rushlight.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
        >>> def first(pair: tuple[int, float]):
        ...     return pair[0]
        >>> graph = torch.fx.symbolic_trace(first).graph
        >>> annotate_getitem_nodes(graph)
        >>> [node.type for node in graph.nodes if node.op == "call_function"]
        [<class 'int'>]
    """
    for node in graph.nodes:
        if node.target is not operator.getitem:
            continue
        container, index = node.args
        kind: Any = container.type
        if kind is None:
            continue
        origin, parameters = get_origin(kind), get_args(kind)
        if origin is tuple and parameters:
            if len(parameters) == 2 and parameters[1] is Ellipsis:
                node.type = parameters[0]
            elif isinstance(index, int) and index < len(parameters):
                node.type = parameters[index]
        elif origin is list and len(parameters) == 1:
            node.type = parameters[0]
        elif origin is dict and len(parameters) == 2:
            node.type = parameters[1]
        elif isinstance(kind, type) and hasattr(kind, "_field_types"):
            node.type = kind._field_types[kind._fields[index]]
        elif isinstance(kind, type) and hasattr(kind, "_fields") and kind.__annotations__:
            node.type = kind.__annotations__[kind._fields[index]]
