"""Backends that are functions: they get the graph of a program, and what they return is called.

The graph holds the ops that the program calls, above autograd, as `fx.experimental.proxy_tensor`
records them on fake tensors; parameters and other tensors that the program closes over are its
attributes. What the program does beside its ops is done when the graph is made, not at later calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight._warnings import warn
from rushlight.compiler import Unsupported
from rushlight.fx import GraphModule
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.utils import _pytree as pytree


def _described(leaf: Any) -> Any:
    """What a graph depends on of an argument; None where it cannot be told."""
    if isinstance(leaf, Tensor):
        strides = leaf.stride() if leaf.layout is rushlight.strided else None
        return (type(leaf), leaf.shape, strides, leaf.dtype, leaf.device, leaf.requires_grad)
    try:
        hash(leaf)
    except TypeError:
        return None
    return (type(leaf), leaf)


def described_leaves(leaves: list[Any]) -> tuple[Any, ...] | None:
    """What a graph depends on of its arguments; None where it cannot be told."""
    described = tuple(map(_described, leaves))
    return None if None in described else described


def tensors_of(values: Iterable[Any]) -> list[Tensor]:
    """Those that are tensors."""
    return [value for value in values if isinstance(value, Tensor)]


def key_of_call(function: Callable[..., Any], leaves: list[Any], spec: Any) -> Any:
    """What graphs of a function depend on, for arguments with these leaves; None: not known."""
    described = described_leaves(leaves)
    if described is None:
        return None
    module = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
    modes = [m.training for m in module.modules()] if isinstance(module, nn.Module) else []
    return id(function), str(spec), described, rushlight.is_grad_enabled(), tuple(modes)


_TENSOR = object()  # the place of one


def without_tensors(values: list[Any]) -> list[Any]:
    """The values, with places for tensors."""
    return [_TENSOR if isinstance(value, Tensor) else value for value in values]


def with_tensors(values: list[Any], tensors: Iterable[Tensor]) -> list[Any]:
    """The other way."""
    rest = iter(tensors)
    return [next(rest) if value is _TENSOR else value for value in values]


class Program:
    """A function of the tensors among the leaves alone, and how its results are put together."""

    def __init__(self, function: Callable[..., Any], leaves: list[Any], spec: Any) -> None:
        self.function, self.spec = function, spec
        self.leaves = without_tensors(leaves)
        self.results: list[Any] = []
        self.out_spec: Any = None

    def run(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The tensors among the results."""
        args, kwargs = pytree.tree_unflatten(with_tensors(self.leaves, tensors), self.spec)
        flat, self.out_spec = pytree.tree_flatten(self.function(*args, **kwargs))
        self.results = without_tensors(flat)
        return tuple(tensors_of(flat))

    def results_with(self, tensors: Any) -> Any:
        """What the function returns, with these tensors in it."""
        return pytree.tree_unflatten(with_tensors(self.results, tensors), self.out_spec)


class GraphCall:
    """A function whose calls run what a backend makes of its graph.

    There is a graph for each kind of arguments (shapes, dtypes, numbers, grad mode, training mode).
    A program that depends on values of tensors runs as it is written, with a warning.

    Args:
        backend: a function of a `GraphModule` and the tensors that it is called with first, which
            returns a function of such tensors that gives a tuple or list of tensors.
        fullgraph: raise `Unsupported` instead of the warning.
    """

    def __init__(self, backend: Callable[..., Any], fullgraph: bool) -> None:
        self.backend, self.fullgraph = backend, fullgraph
        self.made: dict[Any, tuple[Program, Callable[..., Any]] | None] = {}

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        key = key_of_call(function, leaves, spec)
        if key is None:
            return function(*args, **kwargs)
        if key not in self.made:
            self.made[key] = self._make(function, leaves, spec)
        made = self.made[key]
        if made is None:
            return function(*args, **kwargs)
        program, call = made
        return program.results_with(call(*tensors_of(leaves)))

    def _make(self, function: Callable[..., Any], leaves: list[Any], spec: Any):
        program = Program(function, leaves, spec)
        tensors = tensors_of(leaves)
        try:
            graph = make_fx(
                program.run, tracing_mode="fake", _allow_non_fake_inputs=True, pre_dispatch=True
            )(*tensors)
        except Exception as error:
            if self.fullgraph:
                raise Unsupported(
                    f"compile(fullgraph=True): no graph holds this program: {error}"
                ) from error
            warn(f"compile: the program runs as it is written, since no graph holds it: {error}")
            return None
        return program, self.backend(graph, tensors)


def count_ops(graph: GraphModule) -> int:
    """How many ops, functions and modules a graph calls."""
    return sum(node.op.startswith("call") for node in graph.graph.nodes)
