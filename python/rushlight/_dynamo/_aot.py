"""`aot_function` and `aot_module`: compilers that get the graph of forward and that of backward.

Both graphs are recorded before anything runs: forward and the gradients of its results are traced
as one function of inputs and of gradients of results ("tangents"), which is then cut in two.
Forward also returns what backward needs of it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight._dynamo._graphs import Program, key_of_call, tensors_of
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.autograd import Function
from rushlight.func import functional_call
from rushlight.fx import Graph, GraphModule, Node
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.utils import _pytree as pytree

__all__ = [
    "aot_function",
    "aot_module",
    "default_partition",
    "make_boxed_compiler",
    "make_boxed_func",
    "nop",
]

Compiler = Callable[[GraphModule, list[Tensor]], Callable[..., Any]]


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """A function that calls `f` with the elements of the one list that it gets.

    Args:
        f: a function of tensors.

    Example:
        >>> boxed = functorch.compile.make_boxed_func(torch.sub)
        >>> boxed([torch.tensor(5), torch.tensor(3)])
        tensor(2)
    """

    def boxed(args: list[Any]) -> Any:
        return f(*args)

    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler: Compiler) -> Compiler:
    """A compiler whose results take one list, made of one whose results take tensors.

    Args:
        compiler: a function of a `GraphModule` and its example inputs.
    """

    @functools.wraps(compiler)
    def boxed_compiler(graph: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        return make_boxed_func(compiler(graph, inputs))

    return boxed_compiler


def nop(fx_g: GraphModule, _: Any) -> Callable[..., Any]:
    """The compiler that changes nothing.

    Args:
        fx_g: the graph.
        _: its example inputs.
    """
    return make_boxed_func(fx_g.forward)


def _call(compiled: Callable[..., Any], args: list[Any]) -> Any:
    result = compiled(args) if getattr(compiled, "_boxed_call", False) else compiled(*args)
    return list(result) if isinstance(result, (tuple, list)) else [result]


# ---- one graph of both, and the cut ----


def _needed(outputs: list[Any], stop: set[Node]) -> set[Node]:
    """The nodes that outputs are made of, without looking behind those of `stop`."""
    found: set[Node] = set()
    waiting = [node for node in outputs if isinstance(node, Node)]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [] if node in stop else node.all_input_nodes
    return found


def _writes(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and schema.is_mutable


def _part(
    joint: GraphModule, inputs: list[Node], outputs: list[Any], also: Iterable[Node] = ()
) -> GraphModule:
    """The nodes that make the outputs of the inputs, and some more."""
    graph, needed = Graph(), _needed([*outputs, *also], set(inputs))
    made = {node: graph.placeholder(node.name) for node in inputs}
    for node in joint.graph.nodes:
        if node in needed and node not in made:
            made[node] = graph.node_copy(node, made.__getitem__)
    graph.output(tuple(made[out] if isinstance(out, Node) else out for out in outputs))
    part = GraphModule(joint, graph)
    part.recompile()
    return part


def default_partition(
    joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int
) -> tuple[GraphModule, GraphModule]:
    """Cut a joint graph into the graph of forward and that of backward.

    Forward has the nodes that its outputs are made of, and returns after them what backward reads
    of these and of the inputs; backward takes that and the gradients of the outputs.

    Args:
        joint_module: a graph whose inputs are named `primals_…` and `tangents_…`, and whose
            outputs are those of forward, then the gradients of the inputs.
        num_fwd_outputs: how many of them are forward's.
    """
    nodes = list(joint_module.graph.nodes)
    outputs = pytree.tree_leaves(nodes[-1].args[0])
    inputs = [node for node in nodes if node.op == "placeholder"]
    primals = [node for node in inputs if node.name.startswith("primals")]
    tangents = [node for node in inputs if node.name.startswith("tangents")]
    results, grads = outputs[:num_fwd_outputs], outputs[num_fwd_outputs:]
    of_tangents = set(tangents)
    for node in nodes[:-1]:
        if any(input in of_tangents for input in node.all_input_nodes):
            of_tangents.add(node)
    writes = [node for node in nodes if _writes(node) and node not in of_tangents]
    forward = _needed(results + writes, set(primals)) | set(primals)
    # Of several results of one node forward keeps each by itself.
    forward |= {n for n in nodes if n.target is operator.getitem and n.args[0] in forward}
    constants = {node for node in nodes if node.op == "get_attr"}
    backward = _needed(grads, forward)
    saved = [
        node for node in nodes if node in backward and node in forward and node not in constants
    ]
    return (
        _part(joint_module, primals, results + saved, writes),
        _part(joint_module, saved + tangents, grads),
    )


def _rename_inputs(joint: GraphModule, count: int) -> None:
    inputs = [node for node in joint.graph.nodes if node.op == "placeholder"]
    for i, node in enumerate(inputs):
        kind, number = ("primals", i + 1) if i < count else ("tangents", i - count + 1)
        node.name = node.target = f"{kind}_{number}"
    joint.recompile()


class _Compiled:
    """What one kind of arguments is computed by."""

    def __init__(self, owner: _AotFunction, leaves: list[Any], spec: Any) -> None:
        self.program = Program(owner.function, leaves, spec)
        self.owner = owner
        tensors = tensors_of(leaves)
        self.differentiates = rushlight.is_grad_enabled() and any(t.requires_grad for t in tensors)
        self.backward: Callable[..., Any] | None = None
        if self.differentiates:
            self._make_both(tensors)
        else:
            graph = self._trace(self.program.run)(*tensors)
            self.forward = owner.forward_compiler(graph, tensors)

    def _trace(self, f: Callable[..., Any]) -> Callable[..., GraphModule]:
        table = self.owner.decompositions
        return make_fx(f, table, tracing_mode="fake", _allow_non_fake_inputs=True)

    def _make_both(self, tensors: list[Tensor]) -> None:
        count, program = len(tensors), self.program
        primals = [t.detach().requires_grad_(t.requires_grad) for t in tensors]
        wanted = [i for i, t in enumerate(tensors) if t.requires_grad]
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            results = program.run(*map(mode.from_tensor, primals))
        self.differentiable = [t.requires_grad for t in results]
        tangents = [
            rushlight.ones(t.shape, dtype=t.dtype, device=t.device)
            for t in results
            if t.requires_grad
        ]

        def joint(*args: Tensor) -> tuple[Any, ...]:
            outs = program.run(*args[:count])
            of = [out for out, yes in zip(outs, self.differentiable, strict=True) if yes]
            inputs = [args[i] for i in wanted]
            grads = rushlight.autograd.grad(of, inputs, args[count:], allow_unused=True)
            return (*outs, *grads)

        graph = self._trace(joint)(*primals, *tangents)
        _rename_inputs(graph, count)
        parts = self.owner.partition(graph, [primals, tangents], num_fwd_outputs=len(results))
        self.wanted, self.num_results, self.num_inputs = wanted, len(results), count
        self.forward = self.owner.forward_compiler(parts[0], tensors)
        self.backward_graph = parts[1]

    def run(self, tensors: list[Tensor]) -> Any:
        """The function's result."""
        if not self.differentiates:
            return self.program.results_with(_call(self.forward, tensors))
        return self.program.results_with(_Both.apply(self, *tensors))

    def gradients(self, saved: list[Tensor], tangents: list[Tensor]) -> list[Tensor | None]:
        """Of each input; the compiler gets the graph when it is run for the first time."""
        args = [*saved, *tangents]
        backward = self.backward or self.owner.backward_compiler(self.backward_graph, args)
        self.backward = backward
        grads: list[Tensor | None] = [None] * self.num_inputs
        for i, grad in zip(self.wanted, _call(backward, args), strict=True):
            grads[i] = grad
        return grads


class _Both(Function):
    @staticmethod
    def forward(ctx: Any, compiled: _Compiled, *tensors: Tensor) -> tuple[Tensor, ...]:
        made = _call(compiled.forward, list(tensors))
        results, saved = made[: compiled.num_results], made[compiled.num_results :]
        ctx.compiled = compiled
        ctx.save_for_backward(*saved)
        constant = [t for t, yes in zip(results, compiled.differentiable, strict=True) if not yes]
        ctx.mark_non_differentiable(*constant)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *tangents: Tensor) -> tuple[Tensor | None, ...]:
        compiled = ctx.compiled
        kept = [
            t.contiguous() for t, yes in zip(tangents, compiled.differentiable, strict=True) if yes
        ]
        return (None, *compiled.gradients(list(ctx.saved_tensors), kept))


class _AotFunction:
    def __init__(self, function, forward_compiler, backward_compiler, partition, decompositions):
        self.function, self.forward_compiler = function, forward_compiler
        self.backward_compiler, self.partition = backward_compiler, partition
        self.decompositions = decompositions
        self.made: dict[Any, _Compiled] = {}

    def call(self, args: Any, kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        key = key_of_call(self.function, leaves, spec)
        if key is None:
            raise ValueError(
                "aot_function: arguments that are no tensors must be hashable, so that calls can "
                "be told apart"
            )
        if key not in self.made:
            self.made[key] = _Compiled(self, leaves, spec)
        return self.made[key].run(tensors_of(leaves))


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., tuple[GraphModule, GraphModule]] = default_partition,
    decompositions: dict[Any, Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Return `fn` with forward and backward computed by what compilers make of their graphs.

    There are graphs for each kind of arguments: shapes, strides, dtypes, devices, which of them
    require gradients, and the values of those that are no tensors.

    Args:
        fn: a function of tensors, and containers of them, that writes to none of them.
        fw_compiler: a function of a `GraphModule` and its example inputs, a list of tensors. What
            it returns is called with tensors, or with one list where it is boxed
            (`make_boxed_func`), and returns a tuple or list.
        bw_compiler: the same for backward; None: `fw_compiler`. It is called when a gradient is
            wanted first.
        partition_fn: cuts the joint graph in two; see `default_partition`.
        decompositions: by op, functions that are run in its place.

    Raises:
        ValueError: an argument that is no tensor and cannot be hashed.

    Example:
        >>> def show(graph, inputs):
        ...     print(len(inputs), "inputs")
        ...     return functorch.compile.make_boxed_func(graph.forward)
        >>> f = functorch.compile.aot_function(lambda x, y: (x * y).sin(), show)
        >>> x = torch.tensor(0.5, requires_grad=True)
        >>> f(x, torch.tensor(0.0)).backward()
        2 inputs
        3 inputs
        >>> x.grad
        tensor(0.)
    """
    aot = _AotFunction(fn, fw_compiler, bw_compiler or fw_compiler, partition_fn, decompositions)

    @functools.wraps(fn)
    def call_compiled(*args: Any, **kwargs: Any) -> Any:
        return aot.call(args, kwargs)

    return call_compiled


class _AotModule(nn.Module):
    def __init__(self, mod: nn.Module, options: tuple[Any, ...], more: dict[str, Any]) -> None:
        super().__init__()
        self.orig_module = mod
        # A method of a module: training mode is one of the things that its graphs depend on.
        self._compiled_with = aot_function(self._call_with, *options, **more)

    def _call_with(self, state: dict[str, Tensor], args: Any, kwargs: Any) -> Any:
        return functional_call(self.orig_module, state, args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module = self.orig_module
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return self._compiled_with(state, args, kwargs)


def aot_module(mod: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """Return a module that computes as `mod` does, by compiled forward and backward.

    Parameters and buffers are inputs of the graphs; they stay those of `mod`.

    Args:
        mod: a module.
        args: as for `aot_function`, after `fn`.
        kwargs: likewise.
    """
    return _AotModule(mod, args, kwargs)
