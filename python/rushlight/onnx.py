"""Export to ONNX: the names that programs import. There is no exporter yet."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["ONNXProgram", "OperatorExportTypes", "TrainingMode", "export", "is_in_onnx_export"]


class OperatorExportTypes(Enum):
    """What becomes of ops that ONNX lacks."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(Enum):
    """Whether a network is exported for training."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def is_in_onnx_export() -> bool:
    """Whether an export is going on: never."""
    return False


def _refuse(name: str) -> Any:
    def refused(*args, **kwargs):
        raise RuntimeError(f"rushlight has no torch.onnx.{name} yet: it writes no ONNX files")

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = "Refused: there is no exporter yet."
    return refused


class ONNXProgram:
    """An exported program. Nothing makes one yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("rushlight has no torch.onnx.ONNXProgram yet: it writes no ONNX files")


export = _refuse("export")
dynamo_export = _refuse("dynamo_export")
register_custom_op_symbolic = _refuse("register_custom_op_symbolic")
unregister_custom_op_symbolic = _refuse("unregister_custom_op_symbolic")
select_model_mode_for_export = _refuse("select_model_mode_for_export")
