"""What a program does, as a graph: its calls are seen above autograd, as it wrote them."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight.jit._graph import Graph, Node, TensorType, Value, list_of, tuple_of, type_of

__all__ = ["TracingState", "get_trace_graph", "state"]

_running = threading.local()


def state() -> TracingState | None:
    """The trace that is being taken on this thread, or None."""
    return getattr(_running, "state", None)


def _line() -> str:
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}:0" if frame is not None else ""


class TracingState:
    """A trace under way: the graph so far, and which value a tensor is in it."""

    def __init__(self) -> None:
        self._graph = Graph()
        self._scopes: list[str] = []
        # A tensor is kept as long as its id stands for it.
        self._values: dict[int, tuple[rushlight.Tensor, Value]] = {}

    def graph(self) -> Graph:
        """The graph so far."""
        return self._graph

    def push_scope(self, name: str) -> None:
        """Nodes are in this scope, too, until it is left."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """Leaves the innermost scope."""
        if not self._scopes:
            raise RuntimeError("pop_scope(): no scope was entered")
        self._scopes.pop()

    def current_scope(self) -> str:
        """The names of the scopes, from outside in, with / between."""
        return "/".join(self._scopes)

    def _is(self, tensor: rushlight.Tensor, value: Value) -> None:
        self._values[id(tensor)] = (tensor, value)

    def _take(self, tensor: rushlight.Tensor, name: str = "") -> None:
        """One more input of the graph; the same tensor comes in once."""
        if id(tensor) not in self._values:
            self._is(tensor, self._graph._start._add_output(TensorType(tensor), name))

    def _node(self, kind: str, inputs: list[Value]) -> Node:
        node = Node(self._graph, kind, inputs, self.current_scope(), _line())
        self._graph._nodes.append(node)
        return node

    def _constant(self, thing: Any) -> Value:
        node = self._node("prim::Constant", [])
        kind = type_of(thing)
        if thing is not None:
            node._attributes["value"] = thing
        return node._add_output(kind)

    def _value(self, thing: Any) -> Value:
        if isinstance(thing, rushlight.Tensor):
            known = self._values.get(id(thing))
            if known is None:
                self._is(thing, self._constant(thing))
                known = self._values[id(thing)]
            return known[1]
        if isinstance(thing, list | tuple):
            items = [self._value(item) for item in thing]
            kind = list_of(items[0].type() if items else type_of(0))
            return self._node("prim::ListConstruct", items)._add_output(kind)
        return self._constant(thing)

    def _output(self, node: Node, result: Any) -> None:
        value = node._add_output(type_of(result))
        if isinstance(result, rushlight.Tensor):
            self._is(result, value)

    def _outputs_of(self, node: Node, returns: int, results: Any) -> None:
        for result in results if returns > 1 else (results,) * returns:
            if isinstance(result, list | tuple):
                item = type_of(result[0] if result else 0)
                unpacked = self._node("prim::ListUnpack", [node._add_output(list_of(item))])
                for part in result:
                    self._output(unpacked, part)
            else:
                self._output(node, result)

    def __call__(self, op, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Runs a call of an op and records it, with all arguments of its schema."""
        schema = op._schema
        given = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
        inputs = []
        for argument in schema.arguments:
            thing = given.get(argument.name, argument.default_value)
            if isinstance(thing, list | tuple) and len(thing) == 1 and argument.N:
                thing = list(thing) * argument.N  # one for each dimension
            inputs.append(self._value(thing))
        node = self._node(schema.name, inputs)
        node._schema = str(schema)
        results = op(*args, **kwargs)
        self._outputs_of(node, len(schema.returns), results)
        return results

    def _outputs(self, thing: Any) -> list[Value]:
        """The values of the tensors in a result, of which containers are taken apart."""
        if isinstance(thing, rushlight.Tensor):
            return [self._value(thing)]
        if isinstance(thing, dict):
            thing = list(thing.values())
        if isinstance(thing, list | tuple):
            return [value for item in thing for value in self._outputs(item)]
        if thing is None or isinstance(thing, str | bool | int | float):
            return []
        raise RuntimeError(
            "Only tuples, lists, dicts and tensors can be inputs and outputs of a trace, but got "
            f"unsupported type {type(thing).__name__}"
        )

    def _finish(self, outs: Any) -> None:
        values = self._outputs(outs)
        if len(values) > 1:
            node = self._node("prim::TupleConstruct", values)
            values = [node._add_output(tuple_of([v.type() for v in values]))]
        end = self._graph._end
        for i, value in enumerate(values):
            end._inputs.append(value)
            value._uses.append((end, i))


def _tensors(name: str, thing: Any) -> list[tuple[str, rushlight.Tensor]]:
    if isinstance(thing, rushlight.Tensor):
        return [(name, thing)]
    if isinstance(thing, dict):
        thing = list(thing.values())
    if isinstance(thing, list | tuple):
        return [pair for item in thing for pair in _tensors("", item)]
    if thing is None or isinstance(thing, str):
        return []
    raise RuntimeError(
        "Only tuples, lists, dicts and tensors can be inputs and outputs of a trace, but got "
        f"unsupported type {type(thing).__name__}"
    )


def _named(f: Callable, args: tuple, kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    forward = f.forward if isinstance(f, rushlight.nn.Module) else f
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in inspect.signature(forward).parameters.values() if p.kind in kinds]
    names += [""] * (len(args) - len(names))
    return [*zip(names, args, strict=False), *kwargs.items()]


def get_trace_graph(
    f: Callable, args: Any = (), kwargs: dict[str, Any] | None = None
) -> tuple[Graph, Any]:
    """Runs a module or a function and records the ops that it calls.

    What a module's parameters and buffers are comes in after the arguments.

    Returns:
        the graph, and what the program returned.
    """
    args = args if isinstance(args, tuple) else (args,)
    kwargs = kwargs or {}
    if state() is not None:
        raise RuntimeError("a trace is being taken already")
    trace = TracingState()
    for name, thing in _named(f, args, kwargs):
        for inner, tensor in _tensors(name, thing):
            trace._take(tensor, inner)
    if isinstance(f, rushlight.nn.Module):
        for tensor in f.state_dict(keep_vars=True).values():
            if isinstance(tensor, rushlight.Tensor):
                trace._take(tensor)
    _running.state = trace
    try:
        outs = _C._watch_ops(trace, lambda: f(*args, **kwargs))
    finally:
        _running.state = None
    trace._finish(outs)
    return trace.graph(), outs
