"""`split_module`: splits a graph into modules, and a graph that calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import nn
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _get_attr
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy

__all__ = ["split_module"]


class Partition:
    """The nodes of one module, with its inputs and outputs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.before: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}


def _in_order(partitions: dict[str, Partition]) -> list[Partition]:
    """Partitions behind those that they need."""
    done: dict[str, Partition] = {}
    while len(done) < len(partitions):
        ready = [
            p for p in partitions.values() if p.name not in done and p.before.keys() <= done.keys()
        ]
        if not ready:
            raise RuntimeError("cycle exists between partitions!")
        done[ready[0].name] = ready[0]
    return list(done.values())


def split_module(
    m: GraphModule,
    root_m: nn.Module,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
) -> GraphModule:
    """A GraphModule that calls `submod_0`, `submod_1` and so on, which hold the nodes of `m`.

    Args:
        m: the GraphModule.
        root_m: the module that modules and attributes are taken from.
        split_callback: of a node the number or name of its part.
        qualname_map: filled with new dotted names and the old ones.
        keep_original_order: whether parts run in the order of their first nodes.
        keep_original_node_name: nodes of the parts have the names that they have in `m`.

    Example:
        >>> from rushlight.fx.passes.split_module import split_module
        >>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()))
        >>> parts = split_module(module, module, lambda node: 0 if node.target == "0" else 1)
        >>> [name for name, _ in parts.named_children()]
        ['submod_0', 'submod_1']
    """
    partitions: dict[str, Partition] = {}
    part_of: dict[Node, Partition] = {}
    outside = ("placeholder", "get_attr", "output")
    for node in m.graph.nodes:
        if node.op not in outside:
            name = str(split_callback(node))
            part = partitions.setdefault(name, Partition(name))
            part.nodes.append(node)
            part_of[node] = part
    for node in m.graph.nodes:
        user = part_of.get(node)
        for used in node.all_input_nodes:
            maker = part_of.get(used)
            if maker is user:
                continue
            if maker is not None:
                maker.outputs.setdefault(used)
            if user is not None:
                user.inputs.setdefault(used)
                if maker is not None:
                    user.before.setdefault(maker.name)
    order = _in_order(partitions)
    if keep_original_order:
        order = list(partitions.values())
        seen: set[str] = set()
        for part in order:
            if not part.before.keys() <= seen:
                raise RuntimeError("cycle exists between partitions!")
            seen.add(part.name)
    for part in order:
        for used in part.inputs:
            part.environment[used] = part.graph.placeholder(used.name, type_expr=used.type)
            part.environment[used].meta = used.meta.copy()
        for node in part.nodes:
            _copy_node(part, node, root_m, qualname_map, bool(keep_original_node_name))
        results = [part.environment[node] for node in part.outputs]
        if results:
            part.graph.output(results[0] if len(results) == 1 else tuple(results))
        else:
            part.graph.output(None)
    return _assemble(m, root_m, order)


def _copy_node(
    part: Partition, node: Node, root: nn.Module, names: dict[str, str] | None, keep: bool
) -> None:
    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        part.targets[target] = _get_attr(root, node.target)
        if names is not None:
            names[f"{part.submod_name}.{target}"] = node.target
    new = part.graph.create_node(
        node.op,
        target,
        map_arg(node.args, lambda n: part.environment[n]),
        dict(map_arg(node.kwargs, lambda n: part.environment[n])),
        node.name if keep else None,
        node.type,
    )
    new.meta = node.meta.copy()
    part.environment[node] = new


def _assemble(m: GraphModule, root: nn.Module, order: list[Partition]) -> GraphModule:
    """The graph of calls."""
    graph = Graph()
    values: dict[Node, Node] = {}
    attributes: dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            values[node] = graph.node_copy(node)
        elif node.op == "get_attr":
            values[node] = graph.node_copy(node)
            attributes[node.target] = _get_attr(root, node.target)
    for part in order:
        attributes[part.submod_name] = GraphModule(part.targets, part.graph)
        call = graph.call_module(part.submod_name, tuple(values[node] for node in part.inputs))
        if len(part.outputs) == 1:
            values[next(iter(part.outputs))] = call
            continue
        proxy = Proxy(call)
        for i, node in enumerate(part.outputs):
            values[node] = proxy[i].node  # type: ignore[index]
    for node in m.graph.nodes:
        if node.op == "output":
            graph.output(map_arg(node.args[0], lambda n: values[n]), node.type)
    return GraphModule(attributes, graph)
