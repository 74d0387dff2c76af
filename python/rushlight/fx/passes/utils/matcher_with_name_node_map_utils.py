"""Finds a pattern with named nodes."""

from __future__ import annotations

from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from rushlight.utils import _pytree as pytree

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """A pattern without the names that it returns last, in place, and the names."""
    output: Any = gm.graph.output_node()
    codegen: Any = gm.graph._codegen
    info = getattr(codegen, "pytree_info", None)
    result = output.args[0]
    if info is not None and info.out_spec is not None:
        result = pytree.tree_unflatten(result, info.out_spec)
    if not isinstance(result, tuple) or len(result) < 2 or not isinstance(result[-1], dict):
        raise AssertionError(
            "SubgraphMatcherWithNameNodeMap: a pattern returns a tuple that ends with a dict from "
            "names to its nodes"
        )
    *rest, names = result
    flat, spec = pytree.tree_flatten(rest)
    output.args = (flat,)
    if info is not None:
        codegen.pytree_info = info._replace(out_spec=spec)
    gm.recompile()
    return gm, dict(names)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds the graph of a module that also returns a dict from names to nodes.

    Each match says by name which nodes these are (`name_node_map`).

    Args:
        pattern_gm: the module, which loses the dict; the rest as for `SubgraphMatcher`.

    Example:
        >>> from rushlight.fx.passes.utils import matcher_with_name_node_map_utils as matchers
        >>> def pattern(a):
        ...     more = a + 1
        ...     return torch.relu(more), {"more": more}
        >>> wanted = torch.fx.symbolic_trace(pattern)
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x.sum() + 1)).graph
        >>> (match,) = matchers.SubgraphMatcherWithNameNodeMap(wanted).match(graph)
        >>> match.name_node_map
        {'more': add}
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(
            pattern_gm.graph,
            match_output,
            match_placeholder,
            remove_overlapping_matches,
            ignore_literals,
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches of the pattern in a graph, in the graph's order."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            for name, node in self.name_node_map.items():
                match.name_node_map[name] = match.nodes_map[node]
        return matches
