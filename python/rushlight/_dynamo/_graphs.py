"""Backends that are functions: they get the graph of a program, and what they return is called.

The graph holds the ops that the program calls, above autograd, as `fx.experimental.proxy_tensor`
records them on fake tensors; parameters and other tensors that the program closes over are its
attributes. A graph holds no more than ops: a program that does other things (turns gradients or
autocast on or off, uses custom functions of autograd, leaves values behind in Python) runs as it is
written. Where something changes that it can reach, its graph is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor, nn
from rushlight._dynamo._surroundings import Surroundings
from rushlight._warnings import warn
from rushlight.autograd.function import custom_nodes_behind
from rushlight.compiler import Unsupported
from rushlight.fx import GraphModule
from rushlight.fx.experimental._key_tracer import autocast_state
from rushlight.fx.experimental.proxy_tensor import _Tracing
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
        _refuse_functions(tensors_of(flat))
        return tuple(tensors_of(flat))

    def results_with(self, tensors: Any) -> Any:
        """What the function returns, with these tensors in it."""
        return pytree.tree_unflatten(with_tensors(self.results, tensors), self.out_spec)


def _refuse_functions(results: list[Tensor]) -> None:
    """A graph records what custom functions of autograd compute, and not their backward."""
    for node in custom_nodes_behind(results):
        raise Unsupported(f"its function {node.name()} has a backward of its own")


class _TracingOfProgram(_Tracing):
    """Records the ops that a program calls, above autograd, all under the modes around it."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.run, None, "fake", pre_dispatch=True, foreign=True)
        self.records, self.autocast = rushlight.is_grad_enabled(), autocast_state()

    def _seen(self, func: Any, args: Any, kwargs: Any) -> Any:
        if autocast_state() != self.autocast:
            raise Unsupported(f"it turns autocast on or off, and calls {func}")
        if rushlight.is_grad_enabled() != self.records and any(
            t.requires_grad for t in tensors_of(pytree.tree_leaves((args, kwargs)))
        ):
            raise Unsupported(f"it turns gradients on or off, and calls {func}")
        return super()._seen(func, args, kwargs)

    def run(self, values: list[Any]) -> Any:
        result = super().run(values)
        if any(t._backward_hooks for t, _ in self.tracer.known.values()):
            raise Unsupported("it registers hooks of tensors")
        return result


class _Made(NamedTuple):
    """What stands for a program, as long as what it can reach stays as it was."""

    surroundings: Surroundings
    program: Program
    call: Callable[..., Any] | None  # None: the program runs as it is written


class GraphCall:
    """A function whose calls run what a backend makes of its graph.

    There is a graph for each kind of arguments (shapes, dtypes, numbers, grad mode, training mode).
    A program that no graph holds runs as it is written, with a warning.

    Args:
        backend: a function of a `GraphModule` and the tensors that it is called with first, which
            returns a function of such tensors that gives a tuple or list of tensors.
        fullgraph: raise `Unsupported` instead of the warning.
    """

    def __init__(self, backend: Callable[..., Any], fullgraph: bool) -> None:
        self.backend, self.fullgraph = backend, fullgraph
        self.made: dict[Any, _Made] = {}

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        key = key_of_call(function, leaves, spec)
        if key is None:
            return function(*args, **kwargs)
        made = self.made.get(key)
        if made is None or (made.call is not None and not made.surroundings.is_as_kept()):
            made = self.made[key] = self._make(function, leaves, spec)
        if made.call is None:
            return function(*args, **kwargs)
        return made.program.results_with(made.call(*tensors_of(leaves)))

    def _make(self, function: Callable[..., Any], leaves: list[Any], spec: Any) -> _Made:
        program = Program(function, leaves, spec)
        tensors = tensors_of(leaves)
        roots = [function, *(leaf for leaf in leaves if not isinstance(leaf, Tensor))]
        surroundings = Surroundings().keep(roots)
        try:
            graph = _TracingOfProgram(program).graph_module(tuple(tensors))
            if change := surroundings.change():
                raise Unsupported(f"it leaves more behind than its results: {change}")
        except Exception as error:
            surroundings.restore()
            if self.fullgraph:
                raise Unsupported(
                    f"compile(fullgraph=True): no graph holds this program: {error}"
                ) from error
            warn(f"compile: the program runs as it is written, since no graph holds it: {error}")
            return _Made(surroundings, program, None)
        return _Made(surroundings, program, self.backend(graph, tensors))


def count_ops(graph: GraphModule) -> int:
    """How many ops, functions and modules a graph calls."""
    return sum(node.op.startswith("call") for node in graph.graph.nodes)
