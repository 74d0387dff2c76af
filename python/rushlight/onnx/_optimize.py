"""What depends on constants alone is computed once; what nothing needs is dropped."""

from __future__ import annotations

import importlib
from typing import Any

import rushlight
from rushlight.onnx._model import OnnxGraph, names_used
from rushlight.onnx._types import onnx_package, tensor_proto

# What differs from run to run, or makes much of little.
_LEFT = {
    "RandomUniform",
    "RandomNormal",
    "RandomUniformLike",
    "RandomNormalLike",
    "Dropout",
    "If",
    "Loop",
}
# Ops of which later results may be left out.
_OPTIONAL = {"MaxPool", "LSTM", "GRU", "RNN", "LayerNormalization", "Dropout"}
_LARGEST = 4096  # elements of what is made of smaller constants
# By NumPy's names, the dtypes that the evaluator of the `onnx` package computes in.
_NAMES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        rushlight.bool,
        rushlight.uint8,
        rushlight.int8,
        rushlight.int16,
        rushlight.int32,
        rushlight.int64,
        rushlight.float16,
        rushlight.float32,
        rushlight.float64,
    )
}
_NUMPY = set(_NAMES.values())


def optimize(model: OnnxGraph) -> None:
    """Folds constants and drops unused nodes and initializers, in place."""
    _fold(model)
    _drop(model)


def _fold(model: OnnxGraph) -> None:
    kept: list[Any] = []
    constants = model.initializers
    for node in model.nodes:
        inputs = [name for name in node.input if name]
        foldable = node.op_type not in _LEFT and not node.domain and inputs
        results = None
        if foldable and all(name in constants for name in inputs):
            results = _results(node, {name: constants[name] for name in inputs}, model.opsets[""])
        if results is None:
            kept.append(node)
        else:
            constants.update(zip(node.output, results, strict=True))
    model.nodes[:] = kept


def _results(node: Any, inputs: dict[str, rushlight.Tensor], opset: int) -> Any:
    """What a node makes of constants; None if that is much larger, or NumPy lacks a dtype."""
    if any(t.dtype not in _NUMPY for t in inputs.values()) or not _stays_small(node, inputs):
        return None
    onnx, reference = onnx_package(), importlib.import_module("onnx.reference")
    helper = onnx.helper
    graph = helper.make_graph(
        [node],
        "constant",
        [],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [tensor_proto(name, t) for name, t in inputs.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    arrays = reference.ReferenceEvaluator(made).run(None, {})
    if any(str(a.dtype) not in _NAMES for a in arrays):
        return None
    return [rushlight.as_tensor(a.copy()) for a in arrays]


def _stays_small(node: Any, inputs: dict[str, rushlight.Tensor]) -> bool:
    if node.op_type not in ("Expand", "ConstantOfShape", "Tile", "Range"):
        return True
    sizes = inputs[node.input[-1]]
    if node.op_type == "Range":
        start, end, step = (inputs[name].item() for name in node.input)
        return abs(end - start) <= _LARGEST * abs(step)
    return sizes.prod().item() <= _LARGEST


def _drop(model: OnnxGraph) -> None:
    needed = set(model.outputs)
    kept: list[Any] = []
    for node in reversed(model.nodes):
        if needed & set(node.output):
            while node.op_type in _OPTIONAL and node.output[-1] not in needed:
                node.output.pop()
            kept.append(node)
            needed.update(names_used(node))
    model.nodes[:] = reversed(kept)
    for name in set(model.initializers) - needed:
        del model.initializers[name]
