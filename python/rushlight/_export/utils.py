"""Questions about the nodes of exported programs."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn
from rushlight.export import ExportedProgram, register_dataclass
from rushlight.fx import Node

__all__ = [
    "get_buffer",
    "get_lifted_tensor_constant",
    "get_param",
    "is_buffer",
    "is_lifted_tensor_constant",
    "is_param",
    "register_dataclass_as_pytree_node",
]


def is_param(program: ExportedProgram, node: Node) -> bool:
    """Whether a node is the input for a parameter."""
    return node.name in program.graph_signature.inputs_to_parameters


def get_param(program: ExportedProgram, node: Node) -> nn.Parameter | None:
    """The parameter of a node, None if it is the input for none."""
    name = program.graph_signature.inputs_to_parameters.get(node.name)
    return None if name is None else program.state_dict[name]


def is_buffer(program: ExportedProgram, node: Node) -> bool:
    """Whether a node is the input for a buffer."""
    return node.name in program.graph_signature.inputs_to_buffers


def get_buffer(program: ExportedProgram, node: Node) -> Tensor | None:
    """The buffer of a node, None if it is the input for none."""
    name = program.graph_signature.inputs_to_buffers.get(node.name)
    if name is None:
        return None
    held = program.constants if name in program.constants else program.state_dict
    return held[name]


def is_lifted_tensor_constant(program: ExportedProgram, node: Node) -> bool:
    """Whether a node is the input for a constant tensor."""
    return node.name in program.graph_signature.inputs_to_lifted_tensor_constants


def get_lifted_tensor_constant(program: ExportedProgram, node: Node) -> Tensor | None:
    """The constant tensor of a node, None if it is the input for none."""
    name = program.graph_signature.inputs_to_lifted_tensor_constants.get(node.name)
    return None if name is None else program.constants[name]


def register_dataclass_as_pytree_node(cls: type[Any], **options: Any) -> None:
    """`torch.export.register_dataclass`."""
    register_dataclass(cls, **options)
