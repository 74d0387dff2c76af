"""The operators by which exported graphs hold branches and loops: they take graphs as functions.

Programs call `cond`, `while_loop`, `map` and `scan`; these are what nodes of their graphs call.
Values are flat: lists of tensors in, a tuple of tensors out.
"""

from __future__ import annotations

import types
from typing import Any

import rushlight
from rushlight._ops import HigherOrderOperator, ops

__all__ = ["BY_NAME"]


def _flat(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


class _Cond(HigherOrderOperator):
    def __call__(self, pred: Any, true_graph: Any, false_graph: Any, operands: Any) -> Any:
        """What one of two graphs gives."""
        return _flat((true_graph if pred else false_graph)(*operands))


class _WhileLoop(HigherOrderOperator):
    def __call__(self, condition: Any, body: Any, carried: Any, more: Any) -> Any:
        """What a graph makes of its own results while another one says so."""
        values = tuple(carried)
        while _flat(condition(*values, *more))[0]:
            values = _flat(body(*values, *more))
        return values


class _Map(HigherOrderOperator):
    def __call__(self, body: Any, xs: Any, more: Any) -> Any:
        """What a graph gives for each slice, stacked."""
        steps = zip(*(x.unbind() for x in xs), strict=True)
        rows = [_flat(body(*step, *more)) for step in steps]
        return tuple(rushlight.stack(column) for column in zip(*rows, strict=True))


class _Scan(HigherOrderOperator):
    def __call__(self, combine: Any, init: Any, xs: Any, more: Any = ()) -> Any:
        """The last carried values, and what each step gave, stacked."""
        carried, rows = list(init), []
        for step in zip(*(x.unbind() for x in xs), strict=True):
            out = _flat(combine(*carried, *step, *more))
            carried = list(out[: len(carried)])
            rows.append(out[len(carried) :])
        stacked = (rushlight.stack(column) for column in zip(*rows, strict=True))
        return (*carried, *stacked)


class _WithGrad(HigherOrderOperator):
    def __call__(self, enabled: bool, body: Any, *args: Any) -> Any:
        """What a graph gives with gradients recorded, or not."""
        with rushlight.set_grad_enabled(enabled):
            return _flat(body(*args))


BY_NAME: dict[str, HigherOrderOperator] = {
    operator.name(): operator
    for operator in (
        _Cond("cond"),
        _WhileLoop("while_loop"),
        _Map("map_impl"),
        _Scan("scan"),
        _WithGrad("wrap_with_set_grad_enabled"),
    )
}

ops.higher_order = types.SimpleNamespace(**BY_NAME)
