"""Graphs of what a program does, without a program: `jit._get_trace_graph`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import Tensor, nn
from rushlight._C import Graph, Value
from rushlight.jit._recording import TracingState, record

__all__ = ["get_trace_graph", "named_arguments"]


def _refuse(thing: Any) -> RuntimeError:
    return RuntimeError(
        "Only tuples, lists, dicts and tensors can be inputs and outputs of a trace, but got "
        f"unsupported type {type(thing).__name__}"
    )


def _tensors(name: str, thing: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors in an argument, of which containers are taken apart."""
    if isinstance(thing, Tensor):
        yield name, thing
    elif isinstance(thing, dict | list | tuple):
        for item in thing.values() if isinstance(thing, dict) else thing:
            yield from _tensors("", item)
    elif thing is not None and not isinstance(thing, str):
        raise _refuse(thing)


def _outputs(trace: TracingState, thing: Any) -> Iterator[Value]:
    """The values of the tensors in a result, of which containers are taken apart."""
    if isinstance(thing, Tensor):
        yield trace.value(thing)
    elif isinstance(thing, dict | list | tuple):
        for item in thing.values() if isinstance(thing, dict) else thing:
            yield from _outputs(trace, item)
    elif thing is not None and not isinstance(thing, str | bool | int | float):
        raise _refuse(thing)


def parameters_of(f: Callable) -> list[inspect.Parameter]:
    """What a function or a module says that it takes; nothing of a builtin that does not say."""
    try:
        signature = inspect.signature(f.forward if isinstance(f, nn.Module) else f)
    except ValueError:
        return []
    return list(signature.parameters.values())


def named_arguments(f: Callable, args: tuple, kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """The arguments of a call with their names; '' of those that have none."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters_of(f) if p.kind in kinds]
    names += [""] * (len(args) - len(names))
    return [*zip(names, args, strict=False), *kwargs.items()]


def get_trace_graph(
    f: Callable, args: Any = (), kwargs: dict[str, Any] | None = None, outplace: bool = False
) -> tuple[Graph, Any]:
    """Runs a module or a function and records the ops that it calls.

    What a module's parameters and buffers are comes in after the arguments.

    Returns:
        the graph, and what the program returned.
    """
    args = args if isinstance(args, tuple) else (args,)
    kwargs = kwargs or {}
    trace = TracingState(outplace=outplace)
    for name, thing in named_arguments(f, args, kwargs):
        for inner, tensor in _tensors(name, thing):
            trace.take(tensor, inner)
    if isinstance(f, nn.Module):
        for tensor in f.state_dict(keep_vars=True).values():
            if isinstance(tensor, Tensor):
                trace.take(tensor)
    outs = record(trace, lambda: f(*args, **kwargs), is_trace=False)
    values = list(_outputs(trace, outs))
    if len(values) > 1:
        values = [trace.node("prim::TupleConstruct", values).output()]
    for value in values:
        trace.graph().registerOutput(value)
    return trace.graph(), outs
