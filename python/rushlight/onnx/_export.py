"""`export`: from a module and sample arguments to an ONNX model."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight.onnx import _state
from rushlight.onnx._graph import ExportedGraph, exported_graph
from rushlight.onnx._lowering import Lowering
from rushlight.onnx._program import OnnxGraph, ONNXProgram
from rushlight.onnx._types import onnx_package
from rushlight.onnx.errors import OnnxExporterError

__all__ = ["export"]

OLDEST_OPSET, DEFAULT_OPSET, NEWEST_OPSET = 18, 20, 23


def export(
    model: Any,
    args: tuple[Any, ...] = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: dict[Any, Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: Any = None,
    operator_export_type: Any = None,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[nn.Module]] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Exports a module or function to ONNX.

    The program runs once on the sample arguments, and its ops are written as nodes of ONNX.

    Args:
        model: a module, or a function of tensors.
        args: sample arguments; a single tensor may stand for a tuple of it.
        f: the path, or the open file, to write the model to; None writes nothing.
        kwargs: sample keyword arguments.
        verbose: whether to print the program that was found.
        input_names, output_names: names in order of the flat arguments and results; those that are
            left out are named after the parameters of the program and after its ops.
        opset_version: of ONNX's ops, 18 to 23; 20 by default.
        dynamo: False: nothing is returned, weights stay in the model's file, and `training` applies,
            as of the exporter that PyTorch had before.
        external_data: whether weights go into a file beside the model, `f` + ".data".
        dynamic_shapes: which sizes of the arguments are symbols, in the form of `torch.export`:
            by parameter, or in order, `{dim: Dim or name}`.
        custom_translation_table: by op overload, functions `(builder, *arguments)` that are used
            before those of rushlight (docs/onnx.md).
        report: whether to write a report in Markdown into `artifacts_dir`.
        optimize, do_constant_folding: whether what depends on constants alone is computed now.
        verify: whether to run the model in onnxruntime and compare it with the program.
        export_params: False: parameters and buffers become inputs.
        keep_initializers_as_inputs: whether constants are inputs, too.
        dynamic_axes: which sizes are symbols, by the name of an input or output: `{dim: name}` or
            a list of dims.
        training: with dynamo=False, `TrainingMode.EVAL` exports the program as after `eval()`.
        custom_opsets: versions of other domains by name.

    Returns:
        An `ONNXProgram`; None with dynamo=False.

    Raises:
        OnnxExporterError: the program cannot be exported. All ops that cannot go are named.
        ImportError: the package `onnx` is not installed.
    """
