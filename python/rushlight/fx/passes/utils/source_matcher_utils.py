"""Finds nodes of a graph by the function or module that they come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes of one call of a function or module.

    Args:
        nodes: the nodes.
        source: the function, or the class of the module.
        input_nodes: nodes outside that they use.
        output_nodes: those of them that others use.
        params: those that read parameters.

    For an example see `fx.passes.utils.source_matcher_utils.get_source_partitions`.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)  # what they take, without attributes
    output_nodes: list[Node] = field(default_factory=list)  # those that others use
    params: list[Node] = field(default_factory=list)  # those that read an attribute


def _origins(node: Node, wanted: list[Any]) -> Iterator[tuple[Any, str]]:
    """Of a node the wanted source that it comes from, if there is one, and the name of its call."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1]
        if source in wanted:
            yield source, name
        return
    if "torch_fn" in node.meta:
        name, source = node.meta["torch_fn"]
        function = source.split(".")[1]
        if function in wanted:
            yield function, name
            return
    modules = node.meta.get("nn_module_stack")
    if node.op == "call_function" and modules:
        name, kind = list(modules.values())[-1]
        for source in wanted:
            if isinstance(source, type):
                full = f"{source.__module__}.{source.__qualname__}"
                names = full, re.sub("^rushlight\\b", "torch", full)  # graphs of `export` say torch
                fits = issubclass(kind, source) if isinstance(kind, type) else kind in names
            else:
                fits = kind == source
            if fits:
                yield source, name
                return


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    taken = dict.fromkeys(
        used
        for node in nodes
        for used in node.args
        if isinstance(used, Node) and used not in inside and used.op != "get_attr"
    )
    params = [node for node in nodes if node.op == "get_attr"]
    given = [n for n in nodes if n.op != "get_attr" and not inside.issuperset(n.users)]
    return SourcePartition(nodes, source, list(taken), given, params)


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """The calls of functions and modules in a graph, by the function or module.

    Nodes tell their source in `meta`: "source_fn_stack", "torch_fn" or "nn_module_stack".

    Args:
        graph: the graph.
        wanted_sources: functions and classes of modules.
        filter_fn: must be true of all nodes of a call.

    Example:
        >>> from rushlight.fx.passes.utils import source_matcher_utils as sources
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
        >>> graph = torch.export.export(net, (torch.ones(2, 4),)).graph
        >>> found = sources.get_source_partitions(graph, [torch.nn.Linear, torch.nn.ReLU])
        >>> (linear,), (relu,) = found[torch.nn.Linear], found[torch.nn.ReLU]
        >>> sources.check_subgraphs_connected(linear, relu)
        True
    """
    calls: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        for source, name in _origins(node, wanted_sources):
            calls.setdefault(source, {}).setdefault(name, []).append(node)
    return {
        source: [
            _partition(nodes, source)
            for nodes in by_name.values()
            if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, by_name in calls.items()
    }


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether a node of the second partition uses a node of the first.

    Args:
        subgraph1: the first partition.
        subgraph2: the second.

    For an example see `fx.passes.utils.source_matcher_utils.get_source_partitions`.
    """
    return any(user in subgraph2.nodes for node in subgraph1.nodes for user in node.users)
