"""Export of programs: modules as graphs of ops, which can be saved and run elsewhere.

>>> program = rushlight.export.export(model.eval(), (x,))
>>> program.module()(x)
"""

from __future__ import annotations

from typing import Any

from rushlight._lazy import lazy
from rushlight.export._export import export
from rushlight.export._files import load, save
from rushlight.export.decomp_utils import CustomDecompTable
from rushlight.export.dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, dims
from rushlight.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    default_decompositions,
)
from rushlight.export.graph_signature import ExportBackwardSignature, ExportGraphSignature
from rushlight.export.unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]

lazy(__name__)


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be inputs and outputs of programs that are exported.

    Args:
        cls: the dataclass; its fields are the parts.
        serialized_type_name: how files call it; without a name it cannot be saved.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Sizes:
        ...     width: torch.Tensor
        ...     height: torch.Tensor
        >>> torch.export.register_dataclass(Sizes)
    """
    from rushlight.utils import _pytree

    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
