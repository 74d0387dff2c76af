"""What a program does, as a graph: its calls are seen above autograd, as it wrote them."""

from __future__ import annotations

import inspect
import linecache
import sys
import threading
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._C import Graph, Node, Value

__all__ = ["TracingState", "get_trace_graph", "state"]

_running = threading.local()
_INTS = _C._parse_type("List[int]")


def state() -> TracingState | None:
    """The trace that is being taken on this thread, or None."""
    return getattr(_running, "state", None)


def _program_line() -> tuple[str, int, str]:
    """File, number and text of the line that called the op."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None:
        return "", 0, ""
    file, line = frame.f_code.co_filename, frame.f_lineno
    return file, line, linecache.getline(file, line).rstrip()


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
            value = self._graph.addInput(name)
            value.inferTypeFrom(tensor)
            self._is(tensor, value)

    def _put(self, node: Node) -> Node:
        node.setScope(self.current_scope())
        file, line, text = _program_line()
        if file:
            node._set_place(file, line, text)
        return self._graph.appendNode(node)

    def _node(self, kind: str, inputs: list[Value], outputs: int = 1) -> Node:
        return self._put(self._graph.create(kind, inputs, outputs))

    def _constant(self, thing: Any) -> Value:
        value = self._graph.insertConstant(thing)
        node = value.node()
        node.setScope(self.current_scope())
        file, line, text = _program_line()
        if file:
            node._set_place(file, line, text)
        if isinstance(thing, rushlight.Tensor):
            value.inferTypeFrom(thing)
        return value

    def _value(self, thing: Any) -> Value:
        if isinstance(thing, rushlight.Tensor):
            known = self._values.get(id(thing))
            if known is None:
                self._is(thing, self._constant(thing))
                known = self._values[id(thing)]
            return known[1]
        if isinstance(thing, list | tuple):
            value = self._node("prim::ListConstruct", [self._value(i) for i in thing]).output()
            return value if thing else value.setType(_INTS)
        return self._constant(thing)

    def _output(self, value: Value, result: Any) -> None:
        if isinstance(result, rushlight.Tensor):
            value.inferTypeFrom(result)
            self._is(result, value)

    def _outputs_of(self, node: Node, returns: int, results: Any) -> None:
        all_results = results if returns > 1 else (results,) * returns
        for value, result in zip(node.outputs(), all_results, strict=False):
            if isinstance(result, list | tuple):
                unpacked = self._node("prim::ListUnpack", [value], len(result))
                for part_value, part in zip(unpacked.outputs(), result, strict=True):
                    self._output(part_value, part)
            else:
                self._output(value, result)

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
        name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        node = self._put(self._graph._create_op(name, inputs, len(schema.returns)))
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
            values = [self._node("prim::TupleConstruct", values).output()]
        for value in values:
            self._graph.registerOutput(value)


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
