"""The names of PyTorch's compiler front end that programs use; see `rushlight.compiler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight._dynamo import config
from rushlight._dynamo import exc as exc
from rushlight._dynamo._explain import explain
from rushlight._dynamo.eval_frame import OptimizedModule, is_dynamo_supported
from rushlight.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    substitute_in_graph,
)
from rushlight.compiler import compile as _compile

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
    "substitute_in_graph",
]


def optimize(backend="inductor", *, nopython: bool = False, **options):
    """A decorator: `compile` under its old name."""
    return lambda model: _compile(model, backend=backend, fullgraph=nopython)


def run(fn=None):
    """Return the function."""
    return fn if fn is not None else lambda function: function


def forbid_in_graph(fn: Callable[..., Any]):
    """Return the function."""
    return fn


def graph_break(msg: str = ""):
    """Accepted: there is no graph to break."""


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Accepted: sizes are never assumed."""


def maybe_mark_dynamic(t, index):
    """Accepted: sizes are never assumed."""


def mark_static(t, index=None):
    """Accepted: sizes are never assumed."""


def mark_static_address(t, guard: bool = False):
    """Accepted: addresses are never assumed."""
