"""Branches and loops of a program that is traced: nodes that take graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import Tensor, nn
from rushlight._dynamo.exc import UncapturedHigherOrderOpError
from rushlight._higher_order_ops import utils
from rushlight._higher_order_ops.operators import BY_NAME
from rushlight._subclasses.fake_tensor import FakeTensor
from rushlight.fx.experimental._key_tracer import PythonKeyTracer
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.utils import _pytree as pytree

__all__ = ["ControlTracer"]


class _Frame:
    """A graph that is being written, while the one around it waits."""

    def __init__(self, tracer: ControlTracer) -> None:
        self.graph, self.root, self.known = tracer.graph, tracer.root, tracer.known


class ControlTracer(PythonKeyTracer):
    """Traces functions of `cond`, `while_loop`, `map` and `scan` into graphs of their own.

    Tensors that such a function closes over become further arguments of its graph.
    """

    def __init__(self) -> None:
        super().__init__()
        self._outer: list[_Frame] = []
        self._captured: list[list[Tensor]] = []
        self.paused = False  # ops run without being recorded

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Within it `cond` and its like are written into the graph."""
        before, utils.tracer = utils.tracer, self
        try:
            yield
        finally:
            utils.tracer = before

    # ---- inner graphs ----

    def node_from_elsewhere(self, tensor: Tensor) -> Node:
        if not self._outer:
            return super().node_from_elsewhere(tensor)
        source = self._outside(tensor)
        last = [n for n in self.graph.nodes if n.op == "placeholder"]
        with self.graph.inserting_after(last[-1] if last else None):
            node = self.graph.create_node("placeholder", source.name)
        node.target = node.name
        node.meta["val"] = source.meta["val"]
        self._captured[-1].append(tensor)
        return node

    def _outside(self, tensor: Tensor) -> Node:
        """The node of a tensor in the graph around this one."""
        inner, captured = _Frame(self), self._captured.pop()
        self._restore(self._outer.pop())
        try:
            return self.node_of(tensor)
        finally:
            self._outer.append(_Frame(self))
            self._restore(inner)
            self._captured.append(captured)

    def _restore(self, frame: _Frame) -> None:
        self.graph, self.root, self.known = frame.graph, frame.root, frame.known

    def _inner(self, f: Callable[..., Any], args: list[Tensor], captured: list[Tensor]) -> Any:
        """The graph of a function, what it gives, and `captured` with what it closes over."""
        self._outer.append(_Frame(self))
        self._captured.append(list(captured))
        self.graph, self.root, self.known = Graph(), nn.Module(), {}
        try:
            for i, tensor in enumerate([*args, *captured]):
                node = self.graph.create_node("placeholder", f"arg{i}_1")
                self.track(tensor, node)
            result = f(*args)
            leaves, spec = pytree.tree_flatten(result)
            for leaf in leaves:
                if not isinstance(leaf, Tensor):
                    raise UncapturedHigherOrderOpError(
                        f"a branch or a loop of an traced program gives tensors, got {type(leaf)}"
                    )
            given = {id(t) for t in (*args, *self._captured[-1])}
            if any(id(leaf) in given for leaf in leaves):
                raise UncapturedHigherOrderOpError(
                    "a branch or a loop of an traced program must not return its input: aliasing "
                    "is not supported. Return a clone of it."
                )
            nodes = tuple(self.node_of(leaf) for leaf in leaves)
            return self.graph, self.root, nodes, leaves, spec, self._captured[-1]
        finally:
            self._captured.pop()
            self._restore(self._outer.pop())

    def _attach(self, name: str, graph: Graph, root: nn.Module) -> Node:
        """A node that reads a graph, which becomes an attribute under a new name."""
        path = self.get_fresh_qualname(f"{name}_")
        setattr(self.root, path, GraphModule(root, graph, path))
        return self.create_node("get_attr", path, (), {})

    def _call(self, name: str, args: tuple[Any, ...], results: list[Tensor]) -> None:
        node = self.create_node("call_function", BY_NAME[name], args, {}, name=name)
        self.track(tuple(results), node)

    def _complete(self, graph: Graph, count: int, captured: list[Tensor]) -> None:
        """Placeholders for what another graph of the same operator closes over."""
        inputs = [n for n in graph.nodes if n.op == "placeholder"]
        for tensor in captured[len(inputs) - count :]:
            with graph.inserting_after(inputs[-1] if inputs else None):
                node = graph.create_node("placeholder", f"arg{len(inputs)}_1")
            node.meta["val"] = self.node_of(tensor).meta["val"]
            inputs.append(node)

    # ---- operators ----

    def cond(self, pred: Tensor, true_fn: Any, false_fn: Any, operands: Any) -> Any:
        """`cond` of a tensor."""
        leaves, spec = pytree.tree_flatten(tuple(operands))
        tensors = _tensors(leaves, "cond")
        call = [
            lambda *a, f=f: f(*pytree.tree_unflatten(list(a), spec)) for f in (true_fn, false_fn)
        ]
        first = self._inner(call[0], tensors, [])
        second = self._inner(call[1], tensors, first[5])
        if first[4] != second[4] or _facts(first[3]) != _facts(second[3]):
            raise UncapturedHigherOrderOpError(
                "Expected both branches of cond to return tensors of the same sizes and dtypes, "
                f"got {_facts(first[3])} and {_facts(second[3])}"
            )
        captured = second[5]
        self._complete(first[0], len(tensors), captured)
        graphs = []
        for name, (graph, root, nodes, *_) in (("true_graph", first), ("false_graph", second)):
            graph.output(nodes)
            graphs.append(self._attach(name, graph, root))
        inputs = tuple(self.node_of(t) for t in (*tensors, *captured))
        fake = any(isinstance(t, FakeTensor) for t in first[3])
        taken = first if fake or self._untraced(lambda: bool(pred)) else second
        self._call("cond", (self.node_of(pred), *graphs, inputs), taken[3])
        return pytree.tree_unflatten(taken[3], taken[4])

    def while_loop(self, cond_fn: Any, body_fn: Any, carried: tuple[Any, ...]) -> Any:
        """`while_loop` of tensors."""
        tensors = _tensors(list(carried), "while_loop")
        first = self._inner(cond_fn, tensors, [])
        second = self._inner(body_fn, tensors, first[5])
        if _facts(second[3]) != _facts(tensors):
            raise UncapturedHigherOrderOpError(
                "Expected body_fn of while_loop to return tensors of the sizes and dtypes that it "
                f"takes, got {_facts(second[3])} for {_facts(tensors)}"
            )
        captured = second[5]
        self._complete(first[0], len(tensors), captured)
        first[0].output(first[2][0])
        second[0].output(second[2])
        graphs = [
            self._attach(f"while_loop_{name}_graph", part[0], part[1])
            for name, part in (("cond", first), ("body", second))
        ]
        inputs = [tuple(self.node_of(t) for t in part) for part in (tensors, captured)]
        self._call("while_loop", (*graphs, *inputs), second[3])
        return tuple(second[3])

    def map(self, f: Any, xs: Any, args: tuple[Any, ...]) -> Any:
        """`map` over slices."""
        leaves, spec = pytree.tree_flatten(xs)
        more, form = pytree.tree_flatten(args)
        whole, others = _tensors(leaves, "map"), _tensors(more, "map")
        slices = [self._untraced(lambda t=t: t.select(0, 0)) for t in whole]

        def body(*parts: Any) -> Any:
            step = pytree.tree_unflatten(list(parts[: len(slices)]), spec)
            return f(step, *pytree.tree_unflatten(list(parts[len(slices) :]), form))

        graph, root, nodes, results, out, captured = self._inner(body, [*slices, *others], [])
        graph.output(nodes)
        read = self._attach("body_graph", graph, root)
        length = whole[0].shape[0]
        stacked = [self._untraced(lambda t=t: t.expand(length, *t.shape).clone()) for t in results]
        inputs = [[self.node_of(t) for t in part] for part in (whole, [*others, *captured])]
        self._call("map_impl", (read, *inputs), stacked)
        return pytree.tree_unflatten(stacked, out)

    def scan(self, combine_fn: Any, init: Any, xs: Any) -> Any:
        """`scan` along the first dimension."""
        start, carry_spec = pytree.tree_flatten(init)
        leaves, spec = pytree.tree_flatten(xs)
        carried, whole = _tensors(start, "scan"), _tensors(leaves, "scan")
        slices = [self._untraced(lambda t=t: t.select(0, 0)) for t in whole]

        def body(*parts: Any) -> Any:
            carry = pytree.tree_unflatten(list(parts[: len(carried)]), carry_spec)
            return combine_fn(carry, pytree.tree_unflatten(list(parts[len(carried) :]), spec))

        graph, root, nodes, results, out, captured = self._inner(body, [*carried, *slices], [])
        graph.output(nodes)
        read = self._attach("scan_combine_graph", graph, root)
        count, length = len(carried), whole[0].shape[0]
        stacked = [
            self._untraced(lambda t=t: t.expand(length, *t.shape).clone()) for t in results[count:]
        ]
        given = ([self.node_of(t) for t in carried], [self.node_of(t) for t in whole])
        more = tuple(self.node_of(t) for t in captured)
        self._call("scan", (read, *given, more), [*results[:count], *stacked])
        return pytree.tree_unflatten([*results[:count], *stacked], out)

    def _untraced(self, f: Callable[[], Any]) -> Any:
        """What a function gives, whose ops are in no graph."""
        before, self.paused = self.paused, True
        try:
            return f()
        finally:
            self.paused = before

    def track(self, value: Any, node: Node) -> None:
        self._untraced(lambda: super(ControlTracer, self).track(value, node))


def _facts(tensors: list[Tensor]) -> list[Any]:
    return [(list(map(int, t.shape)), str(t.dtype)) for t in tensors]


def _tensors(leaves: list[Any], name: str) -> list[Tensor]:
    """The operands of an operator, which are tensors."""
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: operands of an traced program are tensors, got {type(leaf)}; a "
                "function may close over numbers"
            )
    return leaves
