"""Modules of subgraphs, and comparison of graphs."""

from __future__ import annotations

from typing import Any

from rushlight import nn
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _assign_attr, _get_attr
from rushlight.fx.node import Node, map_arg

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(nn.Module):
    """A module that holds modules by name, for graphs that call them.

    Args:
        d: modules by name.

    Example:
        >>> from rushlight.fx.passes.utils import HolderModule
        >>> [name for name, _ in HolderModule({"relu": torch.nn.ReLU()}).named_children()]
        ['relu']
    """

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Make a module of a graph that uses attributes of `gm`.

    Args:
        gm: where modules and attributes are.
        subgraph: the graph.
        comp_name: put before the new names in the returned dict.
        class_name: the name of the module's class.

    Returns:
        the module, and from its names, behind `comp_name`, to those in `gm`.

    For an example see `fx.passes.split_module.split_module`.
    """
    root = HolderModule({})
    names = {}
    for node in subgraph.nodes:
        if node.op in ("call_module", "get_attr"):
            _assign_attr(_get_attr(gm, node.target), root, node.target)
            names[f"{comp_name}.{node.target}"] = node.target
    return GraphModule(root, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs compute the same in the same order, regardless of the names of nodes.

    Args:
        left: a graph.
        right: another one.

    Example:
        >>> from rushlight.fx.passes.utils import compare_graphs
        >>> one, two = (torch.fx.symbolic_trace(torch.nn.ReLU()) for _ in range(2))
        >>> compare_graphs(one.graph, two.graph)
        True
    """
    same: dict[Node, Node] = {}
    nodes = list(left.nodes), list(right.nodes)
    if len(nodes[0]) != len(nodes[1]):
        return False
    for ours, theirs in zip(*nodes, strict=True):
        if ours.op != theirs.op or (ours.op != "placeholder" and ours.target != theirs.target):
            return False
        mapped = map_arg((ours.args, ours.kwargs), lambda node: same[node])
        if tuple(mapped[0]) != tuple(theirs.args) or dict(mapped[1]) != dict(theirs.kwargs):
            return False
        same[ours] = theirs
    return True
