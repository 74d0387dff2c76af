"""`exported_graph`: a program as a graph of ops, with what comes in and goes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rushlight import SymInt, Tensor, nn
from rushlight.export import ExportedProgram
from rushlight.export import export as export_program
from rushlight.export._inputs import leaf_names
from rushlight.export.graph_signature import InputKind, OutputKind
from rushlight.fx.node import Node

__all__ = ["ExportedGraph", "exported_graph"]


@dataclass
class ExportedGraph:
    """A program as a graph.

    Attributes:
        program: as `torch.export` gives it.
        inputs: the placeholders of what the caller gives, in order of the flat arguments: tensors,
            and numbers that stay open.
        leaves: for each leaf of the arguments, whether it is among the inputs.
        names: theirs, after the parameters of the program and the way to a leaf.
        constants: by placeholder, the name and the tensor of a parameter, buffer or constant.
        parameters: which of those names are parameters or buffers of the module.
        numbers: by placeholder, arguments that are constants.
        outputs: nodes or Python values, in order of the flat result; what the program writes into
            buffers and arguments is left out.
    """

    program: ExportedProgram
    inputs: list[Node] = field(default_factory=list)
    leaves: list[bool] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    constants: dict[Node, tuple[str, Tensor]] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    numbers: dict[Node, Any] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)


def exported_graph(
    model: nn.Module | ExportedProgram,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any = None,
) -> ExportedGraph:
    """The graph of a module that runs on these arguments.

    Raises:
        TypeError: `model` is neither a module nor an exported program.
    """
    if not isinstance(model, ExportedProgram):
        if not isinstance(model, nn.Module):
            raise TypeError(
                f"export() takes an nn.Module or an ExportedProgram, but got {type(model).__name__}"
            )
        model = export_program(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    found, signature = ExportedGraph(model), model.graph_signature
    nodes = {node.name: node for node in model.graph.nodes}
    names = _names_of_leaves(model)
    for spec in signature.input_specs:
        node, target = nodes.get(spec.arg.name), str(spec.target)
        if node is None:
            continue
        if spec.kind is InputKind.USER_INPUT:
            name = next(names, node.name)
            value = node.meta.get("val")
            found.leaves.append(isinstance(value, Tensor | SymInt))
            if found.leaves[-1]:
                found.inputs.append(node)
                found.names.append(name)
            else:
                found.numbers[node] = value
            continue
        tensor = model.state_dict.get(target)
        found.constants[node] = target, model.constants[target] if tensor is None else tensor
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            found.parameters.add(target)
    end = next(node for node in model.graph.nodes if node.op == "output")
    results = end.args[0]
    assert isinstance(results, list | tuple)
    for result, spec in zip(results, signature.output_specs, strict=True):
        if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
            found.outputs.append(result)
    return found


def _names_of_leaves(program: ExportedProgram) -> Iterator[str]:
    """The names of all leaves of the arguments, if the program has examples of them."""
    names = program._forward_arg_names()
    if program.example_inputs is None or names is None:
        return iter(())
    return iter(leaf_names(names, *program.example_inputs))
