"""Merges matrix products with the same second factor into one product."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import legalize_graph
from rushlight.fx.proxy import Proxy

__all__ = ["are_nodes_independent", "may_depend_on", "merge_matmul", "split_result_tensors"]


def split_result_tensors(result: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """Split a product into pieces with the numbers of rows of some matrices.

    Args:
        result: of the merged call.
        inputs: the first factors.

    For an example see `fx.experimental.merge_matmul.merge_matmul`.
    """
    if isinstance(result, Proxy):  # the sizes are known when it runs
        return rushlight.split(result, [0] * len(inputs))
    return rushlight.split(result, [x.shape[0] for x in inputs])


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether a node is or may depend on another; paths longer than `search_depth` count as
    dependence.

    Args:
        a: the node that may depend.
        b: the other one.
        search_depth: how long paths are followed.

    For an example see `fx.experimental.merge_matmul.merge_matmul`.
    """
    if a is b:
        return True
    inputs = a.all_input_nodes
    if search_depth == 0 and inputs:
        return True
    return any(may_depend_on(used, b, search_depth - 1) for used in inputs)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Whether no node of a list depends on another one.

    Args:
        nodes: the nodes.

    For an example see `fx.experimental.merge_matmul.merge_matmul`.
    """
    pairs = itertools.combinations(nodes, 2)
    return not any(may_depend_on(a, b) or may_depend_on(b, a) for a, b in pairs)


def merge_matmul(in_mod: nn.Module) -> GraphModule:
    """Trace a module and merge calls of `matmul` with the same second factor.

    The first factors are put below each other, so they are matrices.

    Args:
        in_mod: the module.

    Example:
        >>> from rushlight.fx.experimental.merge_matmul import merge_matmul
        >>> class Products(torch.nn.Module):
        ...     def forward(self, upper, lower, right):
        ...         first = torch.matmul(upper, right)
        ...         return first + torch.matmul(lower, right)
        >>> merged = merge_matmul(Products())
        >>> sum(node.target is torch.matmul for node in merged.graph.nodes)
        1
    """
    gm = symbolic_trace(in_mod)
    products: dict[Any, list[Node]] = {}
    for node in gm.graph.nodes:
        called = node.op == "call_function" and node.target is rushlight.matmul
        if called and len(node.args) == 2:
            factor: Any = node.args[1]  # each reading of an attribute is a node
            key = factor.target if factor.op == "get_attr" else factor
            products.setdefault(key, []).append(node)
    for same in products.values():
        if len(same) < 2 or not are_nodes_independent(same):
            continue
        graph, lefts = gm.graph, [node.args[0] for node in same]
        whole = graph.call_function(rushlight.cat, (lefts,))
        product = graph.call_function(rushlight.matmul, (whole, same[0].args[1]))
        parts = graph.call_function(split_result_tensors, (product, lefts))
        for i, node in enumerate(same):
            node.replace_all_uses_with(graph.call_function(operator.getitem, (parts, i)))
            graph.erase_node(node)
    legalize_graph(gm)  # the new nodes stand at the end
    gm.recompile()
    gm.graph.lint()
    return gm
