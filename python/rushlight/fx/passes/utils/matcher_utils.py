"""Finds a pattern of nodes in a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight import Tensor
from rushlight._ops import OpOverload
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import _get_attr, _has_attr
from rushlight.fx.node import Node
from rushlight.fx.passes.utils.fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A match of a pattern.

    Args:
        anchors: the nodes at which the match was found, those of the pattern's results.
        nodes_map: from nodes of the pattern to those of the graph.
        placeholder_nodes: what stands for the pattern's inputs.
        returning_nodes: what stands for its results.
        name_node_map: nodes by name, where the pattern names some.

    For an example see `fx.passes.utils.matcher_utils.SubgraphMatcher`.
    """

    anchors: list[Node]  # the nodes of the pattern that were looked for first
    nodes_map: dict[Node, Any] = field(default_factory=dict)  # by node of the pattern what it is
    placeholder_nodes: list[Any] = field(default_factory=list)  # what its inputs are
    returning_nodes: list[Any] = field(default_factory=list)  # and its results
    name_node_map: dict[str, Any] = field(default_factory=dict)  # of `...WithNameNodeMap` alone


class SubgraphMatcher:
    """Finds a pattern in graphs.

    Args:
        pattern: the graph.
        match_output: whether the pattern's output matches only an output.
        match_placeholder: whether the pattern's inputs match only inputs, instead of any node.
        remove_overlapping_matches: of matches that share nodes the first counts.
        ignore_literals: whether numbers and strings of the pattern match any others.

    Raises:
        ValueError: the pattern has no nodes.
        AssertionError: a node of it is used by nobody.

    Example:
        >>> from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher
        >>> pattern = torch.fx.symbolic_trace(lambda a: torch.relu(a + 1)).graph
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x.sum() + 1) * 3).graph
        >>> (match,) = SubgraphMatcher(pattern).match(graph)
        >>> match.placeholder_nodes, match.returning_nodes
        ([sum_1], [relu])
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        nodes = list(pattern.nodes)
        if not nodes:
            raise ValueError("SubgraphMatcher(): the pattern has no nodes")
        unused = [n for n in nodes if n.op != "output" and not n.is_impure() and not n.users]
        if unused:
            raise AssertionError(f"SubgraphMatcher(): nobody uses {unused[0]} of the pattern")
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        output = nodes[-1]
        self.pattern_placeholder_nodes = [n for n in nodes if n.op == "placeholder"]
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        # A result that another one uses is found with that one.
        self.pattern_anchors = (
            [output] if match_output else [n for n in output.all_input_nodes if len(n.users) == 1]
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches of the pattern in a graph, in the graph's order.

        What is not a result of the pattern is used within the match alone, and no way leads out
        of a match and back in.

        Args:
            graph: where to look.
            node_name_match: nodes with this in their names count as any anchor.
        """
        nodes = list(graph.nodes)
        anchors = [
            (anchor, fitting)
            for anchor in self.pattern_anchors
            if (fitting := [n for n in nodes if self._nodes_are_equal(anchor, n, node_name_match)])
        ]
        found = self._placements({}, anchors, node_name_match) if anchors else iter(())
        used: set[Node] = set()
        matches = []
        for places in found:
            inner = [
                n for wanted, n in places.items() if wanted.op not in ("placeholder", "output")
            ]
            if not self._is_contained(places) or not validate_partition(inner):
                continue
            if self.remove_overlapping_matches and not used.isdisjoint(inner):
                continue
            used.update(inner)
            inputs = [places[n] for n in self.pattern_placeholder_nodes]
            results = [places[n] for n in self.pattern_returning_nodes]
            matches.append(InternalMatch(self.pattern_anchors, places, inputs, results))
        return matches

    def _placements(
        self, places: dict[Node, Any], anchors: Sequence[tuple[Node, list[Node]]], name: str
    ) -> Iterator[dict[Node, Any]]:
        """All ways to place the remaining anchors."""
        if not anchors:
            yield places
            return
        anchor, fitting = anchors[0]
        for node in fitting:
            attempt = dict(places)
            if self._match_nodes(anchor, node, attempt, name):
                yield from self._placements(attempt, anchors[1:], name)

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether nobody outside uses what is not a result."""
        inside = {node for wanted, node in nodes_map.items() if wanted.op != "placeholder"}
        return all(
            wanted.op == "placeholder"
            or wanted in self.pattern_returning_nodes
            or inside.issuperset(node.users)
            for wanted, node in nodes_map.items()
        )

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether a node of the pattern may stand for a node, whatever they use."""
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Whether attributes are both tensors of a class, with whatever values.

        Raises:
            RuntimeError: they are no tensors.
        """
        ours: Any = pn.graph.owning_module
        theirs: Any = gn.graph.owning_module
        if ours is None or theirs is None or not _has_attr(ours, pn.target):
            return pn.target == gn.target
        wanted, value = _get_attr(ours, pn.target), _get_attr(theirs, gn.target)
        if type(wanted) is not type(value):
            return False
        if not isinstance(wanted, Tensor):
            raise RuntimeError(
                f"SubgraphMatcher compares attributes that are tensors, {pn.target} is "
                f"{type(wanted).__name__}"
            )
        return True

    def _match_nodes(
        self, pn: Node, gn: Any, nodes_map: dict[Node, Any], node_name_match: str = ""
    ) -> bool:
        """Places a node of the pattern and all that it uses."""
        if pn in nodes_map:
            known = nodes_map[pn]
            return known is gn if isinstance(known, Node) else _equal_values(known, gn)
        if not isinstance(gn, Node):  # an input of the pattern is any value
            if pn.op == "placeholder":
                nodes_map[pn] = gn
            return pn.op == "placeholder"
        if any(gn is known for known in nodes_map.values()):
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        pairs = _arguments(pn, gn)
        return pairs is not None and self._match_values(*pairs, nodes_map)

    def _match_values(self, wanted: Any, value: Any, nodes_map: dict[Node, Any]) -> bool:
        if isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
            return len(wanted) == len(value) and all(
                self._match_values(w, v, nodes_map) for w, v in zip(wanted, value, strict=True)
            )
        if isinstance(wanted, dict) and isinstance(value, dict):
            return wanted.keys() == value.keys() and all(
                self._match_values(w, value[k], nodes_map) for k, w in wanted.items()
            )
        if isinstance(wanted, slice) and isinstance(value, slice):
            ours, theirs = ((s.start, s.stop, s.step) for s in (wanted, value))
            return self._match_values(ours, theirs, nodes_map)
        if isinstance(wanted, Node):
            return self._match_nodes(wanted, value, nodes_map) or (
                self.ignore_literals and not isinstance(value, Node)
            )
        return self.ignore_literals or _equal_values(wanted, value)


def _equal_values(wanted: Any, value: Any) -> bool:
    return type(wanted) is type(value) and bool(wanted == value)


def _arguments(pn: Node, gn: Node) -> tuple[list[Any], list[Any]] | None:
    """What two nodes take, in the same order; None if that cannot be compared."""
    if len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs):
        return [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()]
    target: Any = pn.target
    if pn.op != "call_function" or not isinstance(target, OpOverload):
        return None
    ours, theirs = (
        [
            n.kwargs[a.name]
            if a.name in n.kwargs
            else n.args[i]
            if i < len(n.args)
            else a.default_value
            for i, a in enumerate(target._schema.arguments)
        ]
        for n in (pn, gn)
    )
    return ours, theirs
