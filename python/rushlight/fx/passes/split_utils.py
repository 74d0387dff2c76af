"""`split_by_tags`: splits a module by the tags of its nodes."""

from __future__ import annotations

import dataclasses
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _assign_attr, _get_attr
from rushlight.fx.node import Node, map_arg
from rushlight.fx.passes.utils.common import HolderModule, lift_subgraph_as_module
from rushlight.fx.proxy import Proxy

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """An attribute by a dotted name.

    Args:
        obj: whose attribute.
        name: the dotted name.

    Example:
        >>> from rushlight.fx.passes.split_utils import getattr_recursive
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 1))
        >>> getattr_recursive(net, "0.bias").shape
        torch.Size([1])
    """
    return _get_attr(obj, name)


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Sets an attribute by a dotted name.

    Args:
        obj: whose attribute.
        attr: the dotted name.
        value: what it becomes.

    For an example see `fx.passes.split_utils.getattr_recursive`.
    """
    *way, field = attr.split(".")
    setattr(_get_attr(obj, ".".join(way)) if way else obj, field, value)


@dataclasses.dataclass
class Component:
    """One piece of a split module: its graph, and the inputs and outputs of the whole graph's
    nodes.

    Args:
        graph: the graph of the piece.
        order: which piece it is, from 0 on.
        name: its name.
        input_placeholders: the inputs of its graph.
        orig_inputs: the nodes of the whole graph that become these inputs.
        orig_outputs: the nodes of the whole graph that it gives.
        getattr_maps: nodes that read attributes, from the whole graph to its own.
        constructor_args: names of what its constructor gets.
        gm: the piece as a module, once it is made.

    For an example see `fx.passes.split_utils.split_by_tags`.
    """

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = dataclasses.field(default_factory=list)
    orig_inputs: list[Node] = dataclasses.field(default_factory=list)
    orig_outputs: list[Node] = dataclasses.field(default_factory=list)
    getattr_maps: dict[Node, Node] = dataclasses.field(default_factory=dict)
    constructor_args: list[str] = dataclasses.field(default_factory=list)
    gm: GraphModule | None = None


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """A module that calls one module for each tag.

    Args:
        gm: the module; each of its nodes that is called has an attribute `tag`.
        tags: all tags, in the order in which the parts run.
        return_fqn_mapping: give the names of the parts' attributes, with those in `gm`, too.
        return_tuple: parts with one result give it in a tuple, too.
        GraphModuleCls: the class of the module.

    Raises:
        RuntimeError: if a part uses what a later one gives.

    For an example see `fx.passes.split_module.split_module`.
    """
    splitting = _Splitting(gm, tags)
    for node in gm.graph.nodes:
        splitting.place(node)
    return splitting.joined(return_fqn_mapping, return_tuple, GraphModuleCls)


class _Splitting:
    """A graph on its way into parts, and into the graph that calls them."""

    def __init__(self, gm: GraphModule, tags: list[str]) -> None:
        self.gm = gm
        self.parts = {tag: Component(Graph(), i, tag) for i, tag in enumerate(tags)}
        self.part_of: dict[Node, Component] = {}
        self.copies: dict[tuple[str, Node], Node] = {}  # by part
        self.main = Graph()
        self.values: dict[Node, Node] = {}  # what stands in it for nodes of `gm`
        self.attributes = [node for node in gm.graph.nodes if node.op == "get_attr"]

    def place(self, node: Node) -> None:
        """Copies a node to where it belongs; those before it have been copied."""
        if node.op == "placeholder":
            self.values[node] = self.main.node_copy(node)
        elif node.op == "output":
            for used in node.all_input_nodes:
                self._give_out(used)
        elif node.op != "get_attr":
            part = self.parts[node.tag]  # type: ignore[attr-defined]
            self.part_of[node] = part
            copy = part.graph.node_copy(node, lambda used: self._copy_of(used, part))
            self.copies[part.name, node] = copy

    def _copy_of(self, used: Node, part: Component) -> Node:
        """What stands in a part for a node that it uses."""
        key = part.name, used
        if key in self.copies:
            return self.copies[key]
        if used in self.attributes:
            self.copies[key] = part.getattr_maps[used] = part.graph.node_copy(used)
            return self.copies[key]
        maker = self.part_of.get(used)
        if maker is not None and maker.order > part.order:
            raise RuntimeError(
                f"the tag {part.name!r} is before {maker.name!r} and uses its {used}"
            )
        copy = self.copies[key] = part.graph.placeholder(used.name, type_expr=used.type)
        copy.meta = used.meta.copy()
        part.orig_inputs.append(used)
        part.input_placeholders.append(copy)
        self._give_out(used)
        return copy

    def _give_out(self, node: Node) -> None:
        """Makes a node a result of its part."""
        maker = self.part_of.get(node)
        if maker is not None and node not in maker.orig_outputs:
            maker.orig_outputs.append(node)

    def joined(self, with_names: bool, in_tuples: bool, kind: type[GraphModule]) -> Any:
        """The module that calls one for each part, and names of their attributes."""
        gm, main, values = self.gm, self.main, self.values
        root = HolderModule({})
        names: dict[str, str] = {}
        for part in self.parts.values():
            # Placeholders come first, and were made where they were needed.
            first: Any = next((n for n in part.graph.nodes if n.op != "placeholder"), None)
            for node in part.input_placeholders:
                first.prepend(node)
            results = tuple(self.copies[part.name, node] for node in part.orig_outputs)
            single = len(results) == 1 and not in_tuples
            part.graph.output(results[0] if single else results)
            part.gm, known = lift_subgraph_as_module(gm, part.graph, part.name)
            names.update(known)
            root.add_module(part.name, part.gm)
            call = main.call_module(part.name, tuple(values[node] for node in part.orig_inputs))
            if single:
                values[part.orig_outputs[0]] = call
                continue
            for i, node in enumerate(part.orig_outputs):
                values[node] = Proxy(call)[i].node  # type: ignore[index]
        output = gm.graph.output_node()
        for node in self.attributes:
            if output in node.users:
                values[node] = main.node_copy(node)
                _assign_attr(_get_attr(gm, node.target), root, node.target)
                names[node.target] = node.target
        main.output(map_arg(output.args[0], lambda node: values[node]))
        main._codegen = gm.graph._codegen
        split = kind(root, main)
        return (split, names) if with_names else split
