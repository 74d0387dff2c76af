"""Finds a pattern of nodes in a graph, and puts another in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor, nn
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _assign_attr, _get_attr, _has_attr
from rushlight.fx.node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place where a pattern was found: the last node, and by node of the pattern what it is."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """The same, with the nodes that were put there."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


class _Found(NamedTuple):
    """What filters are given of a match: the names of PyTorch's `InternalMatch`."""

    anchors: list[Node]
    nodes_map: dict[Node, Any]
    placeholder_nodes: list[Any]
    returning_nodes: list[Node]


class _Matcher:
    """Looks for a pattern in a graph."""

    def __init__(self, pattern: Graph, module: Any, pattern_module: Any, literals: bool) -> None:
        self.pattern = pattern
        self.module = module
        self.pattern_module = pattern_module
        self.ignore_literals = literals
        self.inputs = [node for node in pattern.nodes if node.op == "placeholder"]
        self.outputs = pattern.output_node().all_input_nodes
        if not self.outputs or all(node.op == "placeholder" for node in self.outputs):
            raise ValueError("a pattern computes something")

    def matches(self, graph: Graph) -> Iterator[_Found]:
        """The matches that do not overlap, in the order of the graph."""
        used: set[Node] = set()
        # An output that another one uses is found with that one.
        anchors = [n for n in self.outputs if all(u.op == "output" for u in n.users)]
        nodes = list(graph.nodes)
        for node in nodes:
            for found in self._extend({}, anchors, [node], nodes):
                inner = [
                    value
                    for key, value in found.items()
                    if key.op != "placeholder" and isinstance(value, Node)
                ]
                if used.isdisjoint(inner) and self._is_closed(found):
                    used.update(inner)
                    yield _Found(
                        [found[anchor] for anchor in anchors],
                        found,
                        [found[node] for node in self.inputs if node in found],
                        [found[node] for node in self.outputs],
                    )
                    break

    def _extend(
        self, found: dict[Node, Any], anchors: list[Node], first: list[Node], nodes: list[Node]
    ) -> Iterator[dict[Node, Any]]:
        """All ways to place the remaining anchors."""
        if not anchors:
            yield found
            return
        anchor, *rest = anchors
        for node in first:
            attempt = dict(found)
            if self._node(anchor, node, attempt):
                yield from self._extend(attempt, rest, nodes, nodes)

    def _is_closed(self, found: dict[Node, Any]) -> bool:
        """Whether nobody outside uses what is not an output of the pattern."""
        inside = {value for key, value in found.items() if key.op != "placeholder"}
        return all(
            key.op == "placeholder" or key in self.outputs or set(value.users) <= inside
            for key, value in found.items()
        )

    def _node(self, wanted: Node, node: Any, found: dict[Node, Any]) -> bool:
        if wanted in found:
            return found[wanted] is node
        if wanted.op == "placeholder":
            found[wanted] = node
            return True
        if not isinstance(node, Node) or node.op != wanted.op or node in found.values():
            return False
        if wanted.op == "get_attr":
            same = self._same_attribute(wanted, node)
        else:
            same = wanted.target == node.target
        if not same:
            return False
        found[wanted] = node
        return (
            wanted.kwargs.keys() == node.kwargs.keys()
            and self._value(wanted.args, node.args, found)
            and all(self._value(v, node.kwargs[k], found) for k, v in wanted.kwargs.items())
        )

    def _same_attribute(self, wanted: Node, node: Node) -> bool:
        if self.pattern_module is None or not _has_attr(self.pattern_module, wanted.target):
            return wanted.target == node.target
        a, b = _get_attr(self.pattern_module, wanted.target), _get_attr(self.module, node.target)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            return a.shape == b.shape and a.dtype == b.dtype and rushlight.equal(a, b)
        return a is b

    def _value(self, wanted: Any, value: Any, found: dict[Node, Any]) -> bool:
        if isinstance(wanted, Node):
            return self._node(wanted, value, found)
        if isinstance(value, Node):
            return False
        if isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
            return len(wanted) == len(value) and all(
                self._value(w, v, found) for w, v in zip(wanted, value, strict=True)
            )
        if isinstance(wanted, dict) and isinstance(value, dict):
            return wanted.keys() == value.keys() and all(
                self._value(w, value[k], found) for k, w in wanted.items()
            )
        if isinstance(wanted, slice) and isinstance(value, slice):
            parts = [(w.start, w.stop, w.step) for w in (wanted, value)]
            return self._value(parts[0], parts[1], found)
        return self.ignore_literals or (type(wanted) is type(value) and wanted == value)


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
    wanted, wanted_module = _graph_of(pattern)
    original = gm.graph
    matcher = _Matcher(wanted, gm, wanted_module, ignore_literals)
    matches = [
        match
        for match in matcher.matches(original)
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
            place = match.anchors[0].next
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
    """Replaces every match that does not overlap an earlier one.

    Args:
        gm: the module, changed in place.
        pattern: a function, module or GraphModule; its inputs match anything.
        replacement: another with as many inputs and outputs.

    Returns:
        Where the pattern was.
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
    """The same where functions of `(match, graph, pattern graph)` say which matches count.

    Args:
        gm: the module, changed in place.
        pattern: what is looked for.
        replacement: what comes in its place.
        match_filters: all must be true of a match.
        ignore_literals: numbers and strings in the pattern match any.
        replacement_callback: makes the replacement of a match.
    """
    return _replace(
        gm, pattern, replacement, match_filters or [], ignore_literals, replacement_callback
    )
