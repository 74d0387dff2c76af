"""Graphs without writes in place: what is written becomes a new value, and views are made again."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._ops import OpOverload
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, map_arg

__all__ = ["Functionalizer"]

aten: Any = rushlight.ops.aten


@dataclass
class _Value:
    """A tensor of the old graph: its node in the new one, and what it is a view of.

    A value without a parent is the whole of its memory; `version` counts the writes there.
    """

    node: Node
    parent: _Value | None = None
    # How the view is made of its parent: an op with arguments behind the first, and which result.
    view: tuple[Any, tuple[Any, ...], dict[str, Any], int | None] | None = None
    version: int = 0

    @property
    def base(self) -> _Value:
        """The whole memory."""
        return self if self.parent is None else self.parent.base


@dataclass
class _Item:
    """A list of views, of which `getitem` takes one."""

    node: Node
    source: _Value
    view: tuple[Any, tuple[Any, ...], dict[str, Any]] = field(default=(None, (), {}))


def _functional_name(op: OpOverload) -> Any:
    """The op that gives as a new tensor what another one writes.

    Raises:
        NotImplementedError: there is none.
    """
    name = op._opname
    if name == "bernoulli_" and op._overloadname == "float":
        return aten.bernoulli.p
    if name.endswith("_") and not name.endswith("__"):
        try:
            return getattr(getattr(aten, name[:-1]), op._overloadname)
        except AttributeError:
            pass
    raise NotImplementedError(
        f"run_decompositions: {op} writes in place, and no op gives the same as a new tensor"
    )


class Functionalizer:
    """Copies a graph.

    Args:
        graph: the old graph; its placeholders, and what ops make, are memories of their own.
        mode: the mode of the fake tensors that nodes remember.
    """

    def __init__(self, graph: Graph, mode: Any) -> None:
        self.old, self.mode = graph, mode
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.inputs: list[tuple[Node, _Value]] = []
        self._now: Node | None = None

    def run(self) -> list[Any]:
        """Copy all nodes; the values that the old graph returns."""
        for node in self.old.nodes:
            self._now = node
            if node.op == "output":
                return list(map_arg(node.args[0], self.current))
            if node.op == "placeholder":
                twin = self.graph.node_copy(node)
                self.values[node] = _Value(twin)
                self.inputs.append((node, self.values[node]))
            elif node.op == "get_attr":
                self.values[node] = _Value(self.graph.node_copy(node))
            elif node.target is operator.getitem and isinstance(
                self.values.get(node.args[0]), _Item
            ):
                self._take(node)
            elif isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
                self._write_op(node)
            elif isinstance(node.target, OpOverload) and node.target.is_view:
                self._view_op(node)
            else:
                self.values[node] = _Value(self.graph.node_copy(node, self.current))
        return []

    def written(self) -> list[tuple[Node, Node]]:
        """Placeholders that the graph has written into, and what is in them at the end."""
        return [(old, v.node) for old, v in self.inputs if v.version > 0]

    # ---- values ----

    def current(self, node: Node) -> Node:
        """The node of a value, made again if its memory has been written since."""
        value = self.values[node]
        return value.node if isinstance(value, _Item) else self._fresh(value)

    def _fresh(self, value: _Value) -> Node:
        if value.parent is None or value.version == value.base.version:
            return value.node
        assert value.view is not None
        op, args, kwargs, index = value.view
        made = self.emit(op, (self._fresh(value.parent), *args), kwargs)
        if index is not None:
            made = self.emit(operator.getitem, (made, index), {})
        value.node, value.version = made, value.base.version
        return made

    def emit(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """A new node."""
        name = getattr(getattr(target, "overloadpacket", None), "__name__", None)
        node = self.graph.create_node("call_function", target, args, kwargs, name)
        known = map_arg((args, kwargs), lambda n: n.meta["val"])
        with self.mode, rushlight.no_grad():
            node.meta["val"] = target(*known[0], **known[1])
        for key in ("stack_trace", "nn_module_stack"):
            if self._now is not None and key in self._now.meta:
                node.meta[key] = self._now.meta[key]
        return node

    # ---- views ----

    def _view_op(self, node: Node) -> None:
        first, *rest = node.args
        source = self.values[first]
        args = tuple(map_arg(tuple(rest), self.current))
        kwargs = dict(map_arg(dict(node.kwargs), self.current))
        twin = self.graph.node_copy(node, self.current)
        if isinstance(node.meta.get("val"), list | tuple):
            self.values[node] = _Item(twin, source, (node.target, args, kwargs))
            return
        base = source.base
        self.values[node] = _Value(twin, source, (node.target, args, kwargs, None), base.version)

    def _take(self, node: Node) -> None:
        item: _Item = self.values[node.args[0]]
        twin = self.graph.node_copy(node, lambda n: self.values[n].node)
        made = item.node.meta.get("version", 0)
        view = (*item.view, node.args[1])
        self.values[node] = _Value(twin, item.source, view, made or item.source.base.version)

    # ---- writes ----

    def _write_op(self, node: Node) -> None:
        schema = node.target._schema
        targets = [
            a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write
        ]
        first = schema.arguments[0]
        if targets != [first.name] or not isinstance(node.args[0], Node):
            raise NotImplementedError(
                f"run_decompositions: {node.target} writes into {', '.join(targets)}; only ops "
                "that write into their first argument are made functional"
            )
        value: _Value = self.values[node.args[0]]
        args = tuple(map_arg(node.args, self.current))
        kwargs = dict(map_arg(dict(node.kwargs), self.current))
        if node.target is aten.zero_.default:
            function, args = aten.full_like.default, (*args, 0)
        else:
            function = _functional_name(node.target)
        new = self.emit(function, args, kwargs)
        old = node.args[0].meta["val"]
        made = new.meta["val"]
        if isinstance(made, Tensor) and made.dtype != old.dtype:
            new = self.emit(aten._to_copy.default, (new,), {"dtype": old.dtype})
        self._write(value, new)
        self.values[node] = value

    def _write(self, value: _Value, new: Node) -> None:
        """Set a value, and what it is a view of."""
        if value.parent is not None:
            whole = self._fresh(value.parent)
            self._write(value.parent, self._put_back(value, whole, new))
        value.node = new
        value.version = value.base.version if value.parent is not None else value.version + 1

    def _put_back(self, value: _Value, whole: Node, new: Node) -> Node:
        """The memory with another part."""
        assert value.view is not None
        op, args, kwargs, index = value.view
        name, parent = op._opname, whole.meta["val"]
        shape = [int(n) for n in parent.shape]
        given = {a.name: a.default_value for a in op._schema.arguments[1:]}
        given.update(zip(list(given), args, strict=False), **kwargs)
        if name in ("view", "_unsafe_view", "squeeze", "unsqueeze", "reshape"):
            return self.emit(aten.view.default, (new, shape), {})
        if name in ("alias", "detach", "view_as"):
            return new
        if name in ("permute", "transpose", "t"):
            order = _order(name, given, len(shape))
            back = [order.index(d) for d in range(len(order))]
            return self.emit(aten.permute.default, (new, back), {})
        if name == "select":
            return self.emit(
                aten.select_scatter.default, (whole, new, given["dim"], given["index"]), {}
            )
        if name == "slice":
            bounds = (given["dim"], given["start"], given["end"], given["step"])
            return self.emit(aten.slice_scatter.default, (whole, new, *bounds), {})
        if name == "narrow":
            end = given["start"] + given["length"]
            bounds = (given["dim"], given["start"], end)
            return self.emit(aten.slice_scatter.default, (whole, new, *bounds), {})
        if name == "as_strided":
            return self.emit(aten.as_strided_scatter.default, (whole, new, *args), kwargs)
        if name == "unbind":
            return self.emit(aten.select_scatter.default, (whole, new, given["dim"], index), {})
        if name in ("split", "split_with_sizes"):
            start, end = _bounds(name, given, shape, index or 0)
            return self.emit(aten.slice_scatter.default, (whole, new, given["dim"], start, end), {})
        raise NotImplementedError(
            f"run_decompositions: the program writes through a view by {op}, which cannot be put "
            "back into a new tensor"
        )


def _order(name: str, given: dict[str, Any], dims: int) -> list[int]:
    """The dimensions of the source in the order of those of a view."""
    if name == "permute":
        return [d % dims for d in given["dims"]]
    order = list(range(dims))
    if name == "t":
        return order[::-1]
    a, b = given["dim0"], given["dim1"]
    order[a], order[b] = order[b], order[a]
    return order


def _bounds(name: str, given: dict[str, Any], shape: list[int], index: int) -> tuple[int, int]:
    """Where one part of a split is."""
    if name == "split_with_sizes":
        sizes = given["split_sizes"]
        return sum(sizes[:index]), sum(sizes[: index + 1])
    size = given["split_size"]
    return index * size, min((index + 1) * size, shape[given["dim"]])
