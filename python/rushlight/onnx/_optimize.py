"""What depends on constants alone is computed once; what nothing needs is dropped."""

from __future__ import annotations

import importlib
from typing import Any

import rushlight
from rushlight.onnx._program import OnnxGraph
from rushlight.onnx._types import ELEMENT_TYPES, tensor_proto

# What differs from run to run, or makes much of little.
_LEFT = {"RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "Dropout"}
_LARGEST = 2**20  # elements of what is made of smaller constants


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
    """What a node makes of constants; None if that is large, or NumPy has not its dtypes."""
    if any(t.dtype in (rushlight.bfloat16,) or t.element_size() == 0 for t in inputs.values()):
        return None
    onnx = importlib.import_module("onnx")
    reference = importlib.import_module("onnx.reference")
    helper = onnx.helper
    graph = helper.make_graph(
        [node],
        "constant",
        [],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [tensor_proto(name, t) for name, t in inputs.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    size = max(t.numel() for t in inputs.values())
    if node.op_type in ("Expand", "ConstantOfShape", "Tile", "Range") and size < _LARGEST:
        return None
    arrays = reference.ReferenceEvaluator(made).run(None, {})
    results = [rushlight.as_tensor(a) for a in arrays]
    return results if all(t.dtype in ELEMENT_TYPES for t in results) else None


def _drop(model: OnnxGraph) -> None:
    needed = set(model.outputs)
    kept: list[Any] = []
    for node in reversed(model.nodes):
        if needed & set(node.output):
            kept.append(node)
            needed.update(node.input)
    model.nodes[:] = reversed(kept)
    for name in set(model.initializers) - needed:
        del model.initializers[name]
