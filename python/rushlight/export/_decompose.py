"""`run_decompositions`: the same program without writes in place, in terms of fewer ops."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight._ops import HigherOrderOperator, OpOverload
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.export._decompositions import below
from rushlight.export._functional import Functionalizer
from rushlight.export.decomp_utils import CustomDecompTable
from rushlight.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from rushlight.fx.experimental._key_tracer import PythonKeyTracer
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from rushlight.export.exported_program import ExportedProgram

__all__ = ["decomposed"]

_COPIED = ("stack_trace", "nn_module_stack")


class _Tracer(PythonKeyTracer):
    """Records steps under the names and places of those that they stand for."""

    def __init__(self, mode: FakeTensorMode) -> None:
        super().__init__()
        self.fake_mode = mode
        self.origin: Node | None = None

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        node = super().create_node(*args, **kwargs)
        if self.origin is not None:
            node.meta.update({k: v for k, v in self.origin.meta.items() if k in _COPIED})
        return node

    def forget(self, nodes: list[Node], known: dict[Any, Any]) -> None:
        """Erase nodes that were recorded last; `known` is what was known before them."""
        for node in reversed(nodes):
            self.graph.erase_node(node)
        self.known = known


class _Below(TorchDispatchMode):
    """Records what an op calls below autograd."""

    def __init__(self, tracer: _Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.tracer.record(func, args, kwargs or {})


class _Decomposer(Interpreter):
    """Runs a program on fake tensors, with functions of a table in the place of ops."""

    def __init__(self, program: ExportedProgram, table: Any, mode: FakeTensorMode) -> None:
        super().__init__(program.graph_module, garbage_collect_values=False)
        self.table = table
        self.tracer = _Tracer(mode)

    def run_node(self, n: Node) -> Any:
        self.tracer.origin = n
        return super().run_node(n)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        value = super().placeholder(target, args, kwargs)
        assert self.tracer.origin is not None
        node = self.tracer.graph.node_copy(self.tracer.origin)
        if isinstance(value, Tensor):
            self.tracer.track(value, node)
        return value

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(target, HigherOrderOperator):
            raise NotImplementedError(
                f"run_decompositions: {target} takes graphs, which are not decomposed"
            )
        if not isinstance(target, OpOverload):
            return super().call_function(target, args, kwargs)
        return self.step(target, args, kwargs)

    def step(self, op: Any, args: Any, kwargs: Any) -> Any:
        """One op: by the table, by what it calls, or as it is."""
        if op is rushlight.ops.aten._convolution.default:  # how a trace is shown a convolution
            op, args = rushlight.ops.aten.convolution.default, args[:9]
        instead = self.table.get(op)
        if instead is below:
            return self.below(op, args, kwargs)
        if instead is not None:
            result = _C._watch_ops(self.step, lambda: instead(*args, **kwargs))
            if result is not NotImplemented:
                return result
        return self.tracer.record(op, args, kwargs)

    def below(self, op: Any, args: Any, kwargs: Any) -> Any:
        """What an op calls below autograd; the op itself where that has no form in a graph."""
        before, known = len(self.tracer.graph.nodes), dict(self.tracer.known)
        with _Below(self.tracer):
            result = op(*args, **kwargs)
        made = list(self.tracer.graph.nodes)[before:]
        if not any(getattr(n.target, "namespace", "") == "rushlight" for n in made):
            return result
        self.tracer.forget(made, known)  # it has no form but the whole one
        return self.tracer.record(op, args, kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        self.tracer.origin = None
        self.tracer.create_node("output", "output", (self.tracer.create_arg(args[0]),), {})
        return args[0]


def _inputs(program: ExportedProgram, mode: FakeTensorMode) -> list[Any]:
    """A fake tensor, or the value, for each placeholder."""
    values = []
    for node in program.graph.find_nodes(op="placeholder"):
        value = node.meta["val"]
        if isinstance(value, FakeTensor):
            if hasattr(value, "sym_sizes"):
                raise NotImplementedError(
                    "run_decompositions: the program has open sizes; only programs whose sizes are "
                    "numbers are decomposed"
                )
            value = FakeTensor(mode, value._meta.clone(), value.fake_device)
        values.append(value)
    return values


def decomposed(program: ExportedProgram, table: dict[Any, Any] | None) -> ExportedProgram:
    """The program in terms of fewer ops, without writes in place.

    Args:
        program: the program.
        table: by op, functions that are run in its place; by default all that there are.
    """
    table = CustomDecompTable() if table is None else table
    mode = FakeTensorMode(allow_non_fake_inputs=True, export=True)
    decomposer = _Decomposer(program, table, mode)
    with mode, rushlight.no_grad():
        decomposer.run(*_inputs(program, mode), enable_io_processing=False)
    functional = Functionalizer(decomposer.tracer.graph, mode)
    values = functional.run()
    specs = copy.deepcopy(program.graph_signature.input_specs)
    changed = [_mutation(specs, old, new) for old, new in functional.written()]
    outputs = [spec for spec, _ in changed]
    kept = zip(values, program.graph_signature.output_specs, strict=True)
    outputs += [_output(value, spec) for value, spec in kept]
    functional.graph.output((*(node for _, node in changed), *values))
    functional.graph.eliminate_dead_code()
    known = {n.name: n.meta for n in program.graph.find_nodes(op="placeholder")}
    for node in functional.graph.find_nodes(op="placeholder"):
        node.meta.update(known[node.name])
    module = GraphModule(_attributes(program, decomposer), functional.graph, "GraphModule")
    return program._update(module, ExportGraphSignature(specs, outputs), dialect="ATEN")


def _attributes(program: ExportedProgram, decomposer: _Decomposer) -> nn.Module:
    """What the new graph reads: subgraphs, and tensors that functions of the table bring."""
    root = decomposer.tracer.root
    for name, module in program.graph_module.named_children():
        root.add_module(name, module)
    return root


def _mutation(specs: list[Any], old: Node, new: Node) -> tuple[OutputSpec, Node]:
    """The output that is written into an input."""
    spec = next(s for s in specs if s.arg.name == old.name)
    kinds = {
        InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
        InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
        InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
    }
    if spec.kind not in kinds:
        raise NotImplementedError(f"run_decompositions: the program writes into the constant {old}")
    target = old.name if spec.kind is InputKind.USER_INPUT else spec.target
    return OutputSpec(kinds[spec.kind], TensorArgument(new.name), target), new


def _output(value: Any, spec: OutputSpec) -> OutputSpec:
    if not isinstance(value, Node):
        return OutputSpec(spec.kind, ConstantArgument("", value), spec.target)
    kind = TensorArgument if isinstance(value.meta.get("val"), Tensor) else SymIntArgument
    return OutputSpec(spec.kind, kind(value.name), spec.target)
