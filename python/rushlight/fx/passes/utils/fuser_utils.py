"""Fusion: replaces nodes of a graph by calls of modules."""

from __future__ import annotations

import operator
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import NodeList, stable_topological_sort
from rushlight.fx.passes.utils.common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: NodeList) -> NodeList:
    """Sort nodes topologically.

    Args:
        nodes: the nodes, in any order.

    Raises:
        AssertionError: if some use each other.

    Example:
        >>> from rushlight.fx.passes.utils.fuser_utils import topo_sort
        >>> net = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> x, add, times, _ = net.graph.nodes
        >>> topo_sort([times, add])
        [add, mul]
    """
    waiting = dict.fromkeys(nodes)
    done: dict[Node, None] = {}
    while waiting:
        ready = [n for n in waiting if all(u not in waiting for u in n.all_input_nodes)]
        if not ready:
            raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
        for node in ready:
            del waiting[node]
            done[node] = None
    return list(done)


def validate_partition(partition: NodeList) -> bool:
    """Whether nodes can be one call: no path leads out of them and back in.

    Args:
        partition: the nodes.

    Example:
        >>> from rushlight.fx.passes.utils.fuser_utils import validate_partition
        >>> net = torch.fx.symbolic_trace(lambda x: (x + 1).neg() * 2)
        >>> x, add, neg, times, _ = net.graph.nodes
        >>> validate_partition([add, neg]), validate_partition([add, times])
        (True, False)
    """
    inside = set(partition)
    seen: set[Node] = set()
    way = [u for node in partition for u in node.users if u not in inside]
    while way:
        node = way.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            way.extend(node.users)
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: dict[Node, Any] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Make a module of some nodes; returns it with its input and output nodes.

    Args:
        gm: the module, which is not changed.
        nodes: its nodes, each behind those that it uses.
        module_name: the name of the new module's class.
        partition_lookup_table: the nodes again, as keys; made of `nodes` if not given.
        always_return_tuple: a single result in a tuple, too.

    Raises:
        AssertionError: if a node is not of the module or is called by nobody, or a way leads out
            of the nodes and back in.

    Example:
        >>> from rushlight.fx.passes.utils.fuser_utils import fuse_as_graphmodule
        >>> net = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> x, add, times, _ = net.graph.nodes
        >>> part, inputs, outputs = fuse_as_graphmodule(net, [add, times], "Part")
        >>> part(torch.zeros(2)), inputs, outputs
        (tensor([2., 2.]), (x,), (mul,))
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(
                f"{node} doesn't belong to passed in graph module {gm._get_name()}"
            )
        if node.op == "placeholder" or node.op == "output":
            raise AssertionError(f"{node} is an input or output, and not to be fused")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = dict.fromkeys(nodes) if partition_lookup_table is None else partition_lookup_table
    graph = Graph()
    copies: dict[Node, Node] = {}
    inputs: dict[Node, None] = {}

    def copy_of(node: Node) -> Node:
        if node in copies:
            return copies[node]
        inputs[node] = None
        copies[node] = graph.placeholder(node.name, type_expr=node.type)
        copies[node].meta = node.meta.copy()
        return copies[node]

    for node in nodes:
        copies[node] = graph.node_copy(node, copy_of)
    # Placeholders come first, and were made where they were needed.
    first = next(node for node in graph.nodes if node.op != "placeholder")
    for node in [n for n in graph.nodes if n.op == "placeholder"]:
        first.prepend(node)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(copies[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    made, _ = lift_subgraph_as_module(gm, graph, "", module_name)
    return made, tuple(inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Call a module instead of the nodes that it computes; those stay, without users.

    Args:
        gm: the module, changed in place.
        sub_gm: the module to call.
        orig_inputs: the nodes that it gets as inputs.
        orig_outputs: the nodes that its outputs replace.
        insertion_point: the node after which the call is inserted; the last output by default.

    Example:
        >>> from rushlight.fx.passes.utils import fuser_utils
        >>> net = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> x, add, times, _ = net.graph.nodes
        >>> part, inputs, outputs = fuser_utils.fuse_as_graphmodule(net, [add, times], "part")
        >>> made = fuser_utils.insert_subgm(net, part, inputs, outputs)
        >>> [node.op for node in made.graph.nodes if node.users or node.op == "output"]
        ['placeholder', 'call_function', 'call_module', 'output']
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    place = list(gm.graph.nodes)
    behind = max(orig_outputs, key=place.index) if insertion_point is None else insertion_point
    result = next(n for n in sub_gm.graph.nodes if n.op == "output").args[0]
    with gm.graph.inserting_after(behind):
        call = gm.graph.call_module(name, args=orig_inputs)
    if isinstance(result, Node):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_after(call):
        for i, old in reversed(list(enumerate(orig_outputs))):
            item = gm.graph.call_function(operator.getitem, (call, i))
            old.replace_all_uses_with(item, propagate_meta=True)
    call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Remove nodes without users, the last one first.

    Args:
        gm: the module, changed in place.
        nodes: the nodes, each behind those that it uses.

    Example:
        >>> from rushlight.fx.passes.utils.fuser_utils import erase_nodes
        >>> net = torch.fx.symbolic_trace(lambda x: x + 1)
        >>> _, add, output = net.graph.nodes
        >>> output.args = (None,)
        >>> erase_nodes(net, [add])
        >>> [node.op for node in net.graph.nodes]
        ['placeholder', 'output']
    """
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def _fuse(gm: GraphModule, partition: dict[Node, Any], name: str, in_tuple: bool) -> None:
    nodes = topo_sort(list(partition))
    made = fuse_as_graphmodule(gm, nodes, name, partition, always_return_tuple=in_tuple)
    insert_subgm(gm, *made, nodes[-1])
    erase_nodes(gm, nodes)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: list[dict[Node, Any]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Replace each set of nodes by a call of a module `fused_0`, `fused_1`, ….

    Args:
        gm: the module, changed in place.
        partitions: the nodes, as keys.
        prefix: what the modules' names begin with.
        always_return_tuple: single results in tuples, too.

    Example:
        >>> from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions
        >>> net = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> x, add, times, _ = net.graph.nodes
        >>> made = fuse_by_partitions(net, [{add: None, times: None}])
        >>> [node.target for node in made.graph.nodes]
        ['x', 'fused_0', 'output']
    """
    for i, partition in enumerate(partitions):
        _fuse(gm, partition, f"{prefix}{i}", always_return_tuple)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
