"""Export to ONNX: `export` writes what a module computes as a graph of ONNX's ops.

Nothing here is loaded before it is used; the package `onnx` is needed for an export, `onnxruntime`
to run an `ONNXProgram`.
"""

from __future__ import annotations

from enum import Enum

from rushlight._lazy import lazy

__all__ = [
    "ExportableModule",
    "InputObserver",
    "ONNXProgram",
    "OnnxExporterError",
    "errors",
    "export",
    "is_in_onnx_export",
    "ops",
]


class OperatorExportTypes(Enum):
    """What to do with ops that ONNX lacks: only ONNX is there, which names them and refuses."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(Enum):
    """Whether a network is exported for training."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


with lazy(__name__):
    from rushlight.onnx import errors, ops
    from rushlight.onnx import testing as testing
    from rushlight.onnx import verification as verification
    from rushlight.onnx._export import export
    from rushlight.onnx._program import ONNXProgram
    from rushlight.onnx._state import is_in_onnx_export
    from rushlight.onnx.errors import OnnxExporterError
