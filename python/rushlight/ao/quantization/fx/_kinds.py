"""What calls of a graph are to quantisation: layers, arithmetic, what moves codes as they are."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import nn
from rushlight.ao.nn import quantized
from rushlight.ao.nn.quantized import _arithmetic
from rushlight.ao.quantization import quantization_mappings as mappings
from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub
from rushlight.fx import Node

F = nn.functional

# From functions of floats to those of codes, which are told the scale of their result.
ARITHMETIC: dict[Callable, Callable] = {
    rushlight.add: _arithmetic.add,
    rushlight.mul: _arithmetic.mul,
    rushlight.matmul: _arithmetic.matmul,
    rushlight.cat: _arithmetic.cat,
    _arithmetic.float_add_relu: _arithmetic.add_relu,
    _arithmetic.float_mul_relu: _arithmetic.mul_relu,
}
# Other ways to write them.
_SAME_AS: dict[Callable | str, Callable] = {
    operator.add: rushlight.add,
    operator.iadd: rushlight.add,
    "add": rushlight.add,
    "add_": rushlight.add,
    operator.mul: rushlight.mul,
    operator.imul: rushlight.mul,
    "mul": rushlight.mul,
    "mul_": rushlight.mul,
    operator.matmul: rushlight.matmul,
    "matmul": rushlight.matmul,
    rushlight.concat: rushlight.cat,
    rushlight.concatenate: rushlight.cat,
}
RELUS: frozenset[Any] = frozenset(
    {nn.ReLU, F.relu, F.relu_, rushlight.relu, rushlight.relu_, "relu", "relu_"}
)
# Calls that give codes with the scale of their first argument.
_ON_CODES: frozenset[Any] = RELUS | {
    *(nn.ReLU6, nn.Hardtanh, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.Identity),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool2d, nn.AvgPool3d, nn.Flatten, nn.Unflatten),
    *(nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.Upsample, nn.PixelShuffle, nn.PixelUnshuffle),
    *(F.relu6, F.hardtanh, F.hardtanh_, F.dropout, F.dropout2d, F.max_pool1d, F.max_pool2d),
    *(F.avg_pool2d, F.avg_pool3d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, F.interpolate),
    *(F.pixel_shuffle, F.pixel_unshuffle, operator.getitem),
}
# fmt: off
_NAMES_ON_CODES = frozenset({
    "chunk", "clamp", "clip", "contiguous", "detach", "expand", "flatten", "flip", "mean",
    "movedim", "narrow", "permute", "repeat", "repeat_interleave", "reshape", "reshape_as",
    "select", "split", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unbind",
    "unflatten", "unsqueeze", "view", "view_as",
})
# fmt: on
_METADATA = frozenset({"size", "dim", "stride", "numel", "is_contiguous"})
_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "device", "layout", "requires_grad"})


def kind(node: Node, modules: dict[str, nn.Module]) -> Any:
    """The class of the module, the function or the name of the method that a node calls."""
    if node.op == "call_module":
        return type(modules[node.target])
    return node.target if node.op in ("call_function", "call_method") else None


def arithmetic(node: Node, modules: dict[str, nn.Module]) -> Callable | None:
    """The function of floats, if all that a node combines are values of the graph."""
    called = kind(node, modules)
    function = called if called in ARITHMETIC else _SAME_AS.get(called)
    if function is None or node.op == "call_module":
        return None
    terms = node.args[0] if function is rushlight.cat else node.args
    known = {"dim", "axis"} if function is rushlight.cat else set()
    whole = isinstance(terms, list | tuple) and all(isinstance(t, Node) for t in terms)
    enough = function is rushlight.cat or (whole and len(node.args) == 2)
    return function if whole and enough and set(node.kwargs) <= known else None


def is_layer(node: Node, modules: dict[str, nn.Module]) -> bool:
    """Whether a node is a layer that has a form for codes, with a scale of its result."""
    return node.op == "call_module" and kind(node, modules) in _LAYERS


def is_dynamic_layer(node: Node, modules: dict[str, nn.Module]) -> bool:
    """Whether a node is a layer that may round floats to codes at each call."""
    called = kind(node, modules)
    return (
        node.op == "call_module" and called in mappings.get_default_dynamic_quant_module_mappings()
    )


def takes_codes_as_they_are(node: Node, modules: dict[str, nn.Module]) -> bool:
    """Whether a node gives codes of the same scale for codes."""
    called = kind(node, modules)
    name = called if isinstance(called, str) else getattr(called, "__name__", "")
    named = isinstance(called, str) or getattr(rushlight, name, None) is called
    known = called in _ON_CODES or (named and name in _NAMES_ON_CODES)
    return known and bool(node.args) and isinstance(node.args[0], Node)


def reads_metadata(node: Node, modules: dict[str, nn.Module]) -> bool:
    """Whether a node asks a tensor for what codes tell as well."""
    called = kind(node, modules)
    return called in _METADATA or (called is getattr and node.args[1] in _ATTRIBUTES)


def gives_part(node: Node, modules: dict[str, nn.Module]) -> bool:
    """Whether a node takes a part of a value, which may be a tuple."""
    return kind(node, modules) is operator.getitem


# Convolutions with their batch norm are layers while they are trained.
_LAYERS = {
    *mappings.get_default_static_quant_module_mappings(),
    *mappings.get_default_qat_module_mappings(),
} - {QuantStub, DeQuantStub, nn.Dropout, nn.ReLU6, quantized.FloatFunctional}
_DYNAMIC_LAYERS = set(mappings.get_default_dynamic_quant_module_mappings())
