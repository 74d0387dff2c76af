"""Export of programs: the names exist, and there is no exporter yet."""

from __future__ import annotations

from rushlight import _refused

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
    "draft_export",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]

_WHY = "programs are not turned into graphs that can be exported"

AdditionalInputs = _refused.kind("AdditionalInputs", __name__, _WHY)
CustomDecompTable = _refused.kind("CustomDecompTable", __name__, _WHY)
ExportBackwardSignature = _refused.kind("ExportBackwardSignature", __name__, _WHY)
ExportGraphSignature = _refused.kind("ExportGraphSignature", __name__, _WHY)
ExportedProgram = _refused.kind("ExportedProgram", __name__, _WHY)
FlatArgsAdapter = _refused.kind("FlatArgsAdapter", __name__, _WHY)
ModuleCallEntry = _refused.kind("ModuleCallEntry", __name__, _WHY)
ModuleCallSignature = _refused.kind("ModuleCallSignature", __name__, _WHY)
ShapesCollection = _refused.kind("ShapesCollection", __name__, _WHY)
UnflattenedModule = _refused.kind("UnflattenedModule", __name__, _WHY)
Dim = _refused.kind("Dim", __name__, _WHY)
default_decompositions = _refused.function("torch.export.default_decompositions", _WHY)
draft_export = _refused.function("torch.export.draft_export", _WHY)
export = _refused.function("torch.export.export", _WHY)
load = _refused.function("torch.export.load", _WHY)
register_dataclass = _refused.function("torch.export.register_dataclass", _WHY)
save = _refused.function("torch.export.save", _WHY)
unflatten = _refused.function("torch.export.unflatten", _WHY)
