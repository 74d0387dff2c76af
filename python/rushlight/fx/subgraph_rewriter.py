"""Finds a pattern of nodes in a graph and replaces it by another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rushlight import nn
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _assign_attr, _get_attr, _has_attr
from rushlight.fx.node import Node
from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A match of a pattern: its last node, and a dict from the pattern's nodes to the graph's.

    Args:
        anchor: the last node.
        nodes_map: from the pattern's nodes to the graph's.

    For an example see `fx.replace_pattern`.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A match with the nodes that replaced it.

    Args:
        anchor: the last node.
        nodes_map: from the pattern's nodes to the graph's.
        replacements: the new nodes.

    For an example see `fx.replace_pattern`.
    """

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def _graph_of(source: Any) -> tuple[Graph, Any]:
    """The graph of a pattern, and the module that it reads from."""
    if isinstance(source, GraphModule):
        return source.graph, source
    if isinstance(source, Graph):
        return source, source.owning_module
    module = symbolic_trace(source)
    return module.graph, module


def _bring_modules(gm: GraphModule, graph: Graph, source: Any) -> None:
    """Gives a module what the nodes of a replacement read from theirs."""
    if source is None:
        return
    gm.delete_all_unused_submodules()
    for node in graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        there = _has_attr(gm, node.target)
        if there and (
            not isinstance(_get_attr(gm, node.target), nn.Module) or node.op == "get_attr"
        ):
            continue
        if _has_attr(source, node.target):
            _assign_attr(_get_attr(source, node.target), gm, node.target)
        elif not there:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node in the replacement subgraph with target '
                f"{node.target}, but neither the original nor the replacement has it"
            )


def _replace(
    gm: GraphModule,
    pattern: Any,
    replacement: Any,
    filters: list[Callable[..., bool]],
    ignore_literals: bool,
    callback: Callable[..., Graph] | None,
) -> list[ReplacedPatterns]:
    wanted, _ = _graph_of(pattern)
    original = gm.graph
    if all(node.op == "placeholder" for node in wanted.output_node().all_input_nodes):
        raise ValueError("a pattern computes something")
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(original)
        if all(accepts(match, original, wanted) for accepts in filters)
    ]
    instead: dict[Node, Any] = {}  # what was replaced, as inputs of later matches know it
    done = []
    common = None if replacement is None else _graph_of(replacement)
    for match in matches:
        if callback is not None:
            graph, source = _graph_of(callback(match, original, wanted))
        elif common is not None:
            graph, source = common
        else:
            raise AssertionError("a replacement or a callback for it is needed")
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        given = match.placeholder_nodes
        if len(inputs) != len(given):
            raise AssertionError(
                f"the replacement has {len(inputs)} inputs, the pattern {len(given)}"
            )
        values = {
            new: instead.get(old, old) if isinstance(old, Node) else old
            for new, old in zip(inputs, given, strict=True)
        }
        users = {user for node in match.returning_nodes for user in node.users}
        inside = {v for k, v in match.nodes_map.items() if k.op != "placeholder"}
        place = next((n for n in original.nodes if n in users - inside), None)
        if place is None:
            place = match.nodes_map[match.anchors[0]].next
        before = set(original.nodes)
        with original.inserting_before(place):
            result = original.graph_copy(graph, val_map=values)
        results = [result] if isinstance(result, Node) or result is None else list(result)
        if len(results) != len(match.returning_nodes):
            raise AssertionError("the replacement must have as many outputs as the pattern")
        for old, new in zip(match.returning_nodes, results, strict=True):
            if isinstance(new, Node):
                old.replace_all_uses_with(new)
            instead[old] = new
        for node in reversed(list(original.nodes)):
            if node in inside and not node.users:
                original.erase_node(node)
        added = [node for node in original.nodes if node not in before]
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, added))
        _bring_modules(gm, graph, source)
    gm.recompile()
    return done


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace every match that does not overlap an earlier one.

    Args:
        gm: the module, changed in place.
        pattern: a function, module or GraphModule; its inputs match anything.
        replacement: another with as many inputs and outputs.

    Returns:
        Where the pattern was.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> matches = torch.fx.replace_pattern(
        ...     traced, lambda x: torch.relu(x), lambda x: torch.tanh(x)
        ... )
        >>> len(matches), traced(torch.zeros(1))
        (1, tensor([1.]))
    """
    found = _replace(gm, pattern, replacement, [], False, None)
    return [Match(one.anchor, one.nodes_map) for one in found]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
) -> list[ReplacedPatterns]:
    """Replace matches for which functions of `(match, graph, pattern graph)` are true.

    Args:
        gm: the module, changed in place.
        pattern: the graph to look for.
        replacement: what comes in its place.
        match_filters: all must be true of a match.
        ignore_literals: numbers and strings in the pattern match any.
        replacement_callback: makes the replacement of a match.

    For an example see `fx.replace_pattern`.
    """
    return _replace(
        gm, pattern, replacement, match_filters or [], ignore_literals, replacement_callback
    )
