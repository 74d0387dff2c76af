"""`ExportedProgram`: the graph of a module, its state, and what its inputs and outputs are."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rushlight import Tensor, nn
from rushlight.export.graph_signature import (  # noqa: F401
    ArgumentSpec,
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule

__all__ = [
    "CallSpec",
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "default_decompositions",
]


@dataclass
class ModuleCallSignature:
    """How a submodule was called: its inputs and outputs, and the containers that they are in.

    Args:
        inputs: what the inputs are, by name.
        outputs: what the outputs are.
        in_spec: the containers of the inputs.
        out_spec: the containers of the outputs.
        forward_arg_names: names of the arguments of `forward`, or None.

    Example:
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> [entry.name for entry in program.module_call_graph[0].signature.inputs]
        []
    """

    inputs: list[ArgumentSpec]
    outputs: list[ArgumentSpec]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: Any, new_node: Any) -> None:
        """Replace the name of a node by that of another one."""
        for spec in (*self.inputs, *self.outputs):
            if spec.name == original_node.name:
                spec.name = new_node.name


@dataclass
class ModuleCallEntry:
    """A submodule by its dotted name, "" for the whole; its signature if that was preserved.

    Args:
        fqn: the dotted name.
        signature: how it was called, or None.

    Example:
        >>> program = torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (torch.ones(2),))
        >>> [entry.fqn for entry in program.module_call_graph]
        ['', '0']
    """

    fqn: str
    signature: ModuleCallSignature | None = None


class CallSpec(NamedTuple):
    """The containers of all arguments, as (args, kwargs), and of the result.

    Args:
        in_spec: the containers of the arguments.
        out_spec: those of the result.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> program.call_spec.out_spec.num_leaves
        1
    """

    in_spec: Any
    out_spec: Any


@dataclass
class _Facts:
    """What a program knows beside its graph."""

    state_dict: dict[str, Any]
    constants: dict[str, Any]
    range_constraints: dict[Any, Any]
    module_call_graph: list[ModuleCallEntry]
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None
    guards: list[str] = field(default_factory=list)
    dialect: str = "TRAINING"


class ExportedProgram:
    """A module as a graph of ops, with its parameters, buffers and constants.

    `export` makes one. The graph takes parameters, buffers and constants as inputs, before the
    arguments of the program; `module()` gives a module that is called like the original.

    Args:
        root: what the graph's own attributes (subgraphs) are taken from.
        graph: the graph.
        graph_signature: what its inputs and outputs are.
        state_dict: parameters and persistent buffers by dotted names.
        range_constraints: by symbol, the range of a size.
        module_call_graph: an entry for the whole and one for each submodule that was called.
        example_inputs: the arguments that were exported, as (args, kwargs).
        constants: other tensors and objects by name.
        guards: conditions on the arguments, as texts.
        dialect: "TRAINING", or what `run_decompositions` made of it.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> list(program.state_dict)
        ['weight', 'bias']
    """

    def __init__(
        self,
        root: nn.Module | dict[str, Any],
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        range_constraints: dict[Any, Any],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
        constants: dict[str, Any] | None = None,
        *,
        guards: list[str] | None = None,
        dialect: str = "TRAINING",
    ) -> None:
        if isinstance(root, nn.Module):
            root.meta = getattr(root, "meta", {})
        self._graph_module = GraphModule(root, graph, "GraphModule")
        self._graph_signature = graph_signature
        self._facts = _Facts(
            state_dict,
            constants or {},
            range_constraints,
            module_call_graph,
            example_inputs,
            guards or [],
            dialect,
        )

    # ---- parts ----

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module; it takes parameters and buffers as arguments."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What inputs and outputs of the graph stand for."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and persistent buffers by dotted names; the tensors of the module itself."""
        return self._facts.state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Tensors that are neither: constants and buffers that are not persistent."""
        return self._facts.constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """The same as `constants`."""
        return self._facts.constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """By symbol, the range that a size must be in."""
        return self._facts.range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """An entry for the whole and one for each submodule that was called."""
        return self._facts.module_call_graph

    @property
    def example_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments that were exported, as (args, kwargs)."""
        return self._facts.example_inputs

    @example_inputs.setter
    def example_inputs(self, value: Any) -> None:
        self._facts.example_inputs = value

    @property
    def call_spec(self) -> CallSpec:
        """The containers of arguments and result."""
        signature = self._whole_signature()
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def dialect(self) -> str:
        """ "TRAINING" as exported, "" after `run_decompositions`."""
        return self._facts.dialect

    @property
    def _guards(self) -> list[str]:
        return self._facts.guards

    def _whole_signature(self) -> ModuleCallSignature:
        entry = next((e for e in self.module_call_graph if e.fqn == ""), None)
        if entry is None or entry.signature is None:
            raise RuntimeError("module_call_graph of this program has no entry for the whole")
        return entry.signature

    def _forward_arg_names(self) -> list[str] | None:
        return self._whole_signature().forward_arg_names

    def _value_of(self, target: str) -> Any:
        found = self.state_dict.get(target)
        return self.constants[target] if found is None else found

    def parameters(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Iterate over names and parameters."""
        return ((name, self.state_dict[name]) for name in self.graph_signature.parameters)

    def buffers(self) -> Iterator[Tensor]:
        """Iterate over the buffers."""
        return (buffer for _, buffer in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Iterate over names and buffers."""
        return ((name, self._value_of(name)) for name in self.graph_signature.buffers)

    # ---- use ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use "
            "`exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that is called like the original and shares the tensors of this program.

        Args:
            check_guards: check at each call that the arguments fit what was exported.
        """
        from rushlight.export._unlift import unlifted_module

        return unlifted_module(self, check_guards)

    def run_decompositions(
        self, decomp_table: dict[Any, Any] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The same program without writes in place, in terms of fewer ops.

        Args:
            decomp_table: by op, functions that are run in its place; by default
                `default_decompositions()`.
            decompose_custom_triton_ops: False; there are none.
        """
        from rushlight.export._decompose import decomposed

        if decompose_custom_triton_ops:
            raise NotImplementedError("run_decompositions: there are no Triton ops")
        return decomposed(self, decomp_table)

    def validate(self) -> None:
        """Check that graph and signature fit each other.

        Raises:
            ValueError: they do not.
        """
        self.graph.lint()
        names = [n.name for n in self.graph.nodes if n.op == "placeholder"]
        told = [spec.arg.name for spec in self.graph_signature.input_specs]
        if names != told:
            raise ValueError(f"placeholders are {names}, but the signature tells of {told}")
        returned = len(self.graph.output_node().args[0])
        if returned != len(self.graph_signature.output_specs):
            raise ValueError(
                f"the graph returns {returned} values, but the signature tells of "
                f"{len(self.graph_signature.output_specs)}"
            )

    def _update(
        self,
        graph_module: GraphModule,
        graph_signature: ExportGraphSignature,
        *,
        state_dict: dict[str, Any] | None = None,
        constants: dict[str, Any] | None = None,
        dialect: str | None = None,
    ) -> ExportedProgram:
        """A program with another graph and the same facts, but for those that are given."""
        facts = self._facts
        return ExportedProgram(
            graph_module,
            graph_module.graph,
            graph_signature,
            facts.state_dict if state_dict is None else state_dict,
            copy.deepcopy(facts.range_constraints),
            copy.deepcopy(facts.module_call_graph),
            facts.example_inputs,
            facts.constants if constants is None else constants,
            guards=list(facts.guards),
            dialect=facts.dialect if dialect is None else dialect,
        )

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False)
        body = "\n".join(f"    {line}" for line in code.rstrip("\n").split("\n"))
        signature = str(self.graph_signature).replace("\n", "\n    ")
        ranges = ", ".join(f"{k}: {v}" for k, v in self.range_constraints.items())
        return (
            f"ExportedProgram:\n{body}\n    \nGraph signature: {signature}\n"
            f"Range constraints: {{{ranges}}}\n"
        )


def default_decompositions() -> dict[Any, Any]:
    """The table that `run_decompositions` uses: by op, the function that is run in its place.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> program = program.run_decompositions(torch.export.default_decompositions())
        >>> program.module()(torch.zeros(3, 2)).shape
        torch.Size([3, 1])
    """
    from rushlight.export.decomp_utils import CustomDecompTable

    return CustomDecompTable()
