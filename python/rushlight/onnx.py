"""Export to ONNX: the names exist, and there is no exporter yet."""

from __future__ import annotations

from enum import Enum

from rushlight import _refused

__all__ = [
    "ExportOptions",
    "ONNXProgram",
    "OperatorExportTypes",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
]


class OperatorExportTypes(Enum):
    """What to do with ops that ONNX lacks."""

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
    """Whether an export is running: always False."""
    return False


_WHY = "it writes no ONNX files"

ONNXProgram = _refused.kind("ONNXProgram", __name__, _WHY)
ExportOptions = _refused.kind("ExportOptions", __name__, _WHY)
export = _refused.function("torch.onnx.export", _WHY)
dynamo_export = _refused.function("torch.onnx.dynamo_export", _WHY)
register_custom_op_symbolic = _refused.function("torch.onnx.register_custom_op_symbolic", _WHY)
unregister_custom_op_symbolic = _refused.function("torch.onnx.unregister_custom_op_symbolic", _WHY)
select_model_mode_for_export = _refused.function("torch.onnx.select_model_mode_for_export", _WHY)
