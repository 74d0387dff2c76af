"""Branches and loops: `cond` and `while_loop` as If and Loop, whose bodies are graphs of their own.

A body sees the values of the graph around it by their names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight.fx.graph_module import GraphModule
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._types import element_type, onnx_package

__all__ = ["CONTROL"]

# Lowers the nodes of a graph whose placeholders stand for these values; gives its results.
Run = Callable[[GraphModule, Sequence[Any]], list[Value]]


def _body(g: Builder, name: str, inputs: Sequence[Value], build: Callable[[], list[Value]]) -> Any:
    """A graph of the nodes that `build` writes, which gives what that returns."""
    onnx = onnx_package()
    # Sizes that are computed inside are not to be seen outside.
    outer, known, sizes = g.nodes, dict(g.symbols), g.sizes_written
    g.nodes, g.sizes_written = [], dict(sizes)
    try:
        results = [g.Identity(value) for value in build()]
        nodes = g.nodes
    finally:
        g.nodes, g.symbols, g.sizes_written = outer, known, sizes

    def described(value: Value, sizes: list[int | None] | None) -> Any:
        return onnx.helper.make_tensor_value_info(value.name, element_type(value.dtype), sizes)

    starts = [described(v, [s if isinstance(s, int) else None for s in v.sizes]) for v in inputs]
    return onnx.helper.make_graph(nodes, name, starts, [described(v, None) for v in results])


def _cond(g: Builder, run: Run, pred: Any, yes: Any, no: Any, operands: Sequence[Any]) -> Any:
    if not isinstance(pred, Value):
        return run(yes if pred else no, operands)
    where, dtypes = g.where, [part.dtype for part in g.parts]
    branches = [
        _body(g, f"{where}_{name}", [], functools.partial(run, branch, operands))
        for name, branch in (("then", yes), ("else", no))
    ]
    g.where = where
    made = g.If(
        g.reshape(pred, []),
        then_branch=branches[0],
        else_branch=branches[1],
        outputs=len(dtypes),
        dtype=dtypes,
    )
    return list(made) if len(dtypes) > 1 else [made]


def _while_loop(
    g: Builder, run: Run, test: Any, body: Any, carried: Sequence[Any], more: Sequence[Any] = ()
) -> Any:
    where = g.where
    start = [v if isinstance(v, Value) else g.constant(v) for v in carried]
    (goes_on,) = run(test, [*start, *more])
    inside = [Value(g.name(f"{where}_carried"), v.dtype, v.shape) for v in start]
    count = Value(g.name(f"{where}_step"), rushlight.int64, ())
    before = Value(g.name(f"{where}_goes_on"), rushlight.bool, ())

    def step() -> list[Value]:
        results = run(body, [*inside, *more])
        (again,) = run(test, [*results, *more])
        return [g.reshape(again, []), *results]

    graph = _body(g, f"{where}_body", [count, before, *inside], step)
    g.where = where
    dtypes = [v.dtype for v in start]
    made = g.Loop(
        None, g.reshape(goes_on, []), *start, body=graph, outputs=len(dtypes), dtype=dtypes
    )
    return list(made) if len(dtypes) > 1 else [made]


CONTROL: dict[str, Callable[..., Any]] = {"cond": _cond, "while_loop": _while_loop}
