"""Quantised layers in programs: the ops that archives of quantised networks call.

A packed weight (`classes.quantized`) holds a layer of this package, which computes.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _quantized, nn
from rushlight._library.classes import classes
from rushlight.ao.nn.quantized import modules
from rushlight.ao.nn.quantized.dynamic import modules as dynamic
from rushlight.library import Library

_DTYPES = {
    12: rushlight.qint8,
    13: rushlight.quint8,
    14: rushlight.qint32,
}  # as archives number them
_CLASS = "__torch__.torch.classes.quantized."
_SCALE = "float output_scale, int output_zero_point"
_CHANNELS = "Tensor scales, Tensor zero_points, int axis"
_aten, _ops = Library("aten", "FRAGMENT"), Library("quantized", "DEF")


def _define(library: Library, schema: str, function: Callable[..., Any]) -> None:
    name = library.define(schema)
    for key in ("CompositeExplicitAutograd", "QuantizedCPU"):
        library.impl(name, function, key)


# ---- tensors ----


def _quantize(self, scale, zero_point, dtype):
    return _quantized.quantize_per_tensor(self, scale, zero_point, _DTYPES[dtype])


def _quantize_channels(self, scales, zero_points, axis, dtype):
    return _quantized.quantize_per_channel(self, scales, zero_points, axis, _DTYPES[dtype])


def _define_tensors() -> None:
    tensor = "(Tensor self, float scale, int zero_point"
    channels = f"(Tensor self, {_CHANNELS}"
    by_tensor, by_channel = (
        "_make_per_tensor_quantized_tensor",
        "_make_per_channel_quantized_tensor",
    )
    for schema, function in (
        (f"quantize_per_tensor{tensor}, int dtype) -> Tensor", _quantize),
        (f"quantize_per_channel{channels}, int dtype) -> Tensor", _quantize_channels),
        (f"{by_tensor}{tensor}) -> Tensor", getattr(_quantized, by_tensor)),
        (f"{by_channel}{channels}) -> Tensor", getattr(_quantized, by_channel)),
        ("dequantize.self(Tensor self) -> Tensor", _quantized.dequantize),
        ("int_repr(Tensor self) -> Tensor", _quantized.int_repr),
        ("q_scale(Tensor self) -> float", _quantized.q_scale),
        ("q_zero_point(Tensor self) -> int", _quantized.q_zero_point),
    ):
        _define(_aten, schema, function)


# ---- layers ----


def _forward(relu: bool) -> Callable[..., Any]:
    """Calls a packed layer, whose results get a scale of their own."""

    def function(x, packed, scale, zero_point):
        layer = copy.deepcopy(packed.layer)  # which shares the weight
        layer.scale, layer.zero_point, layer._relu = scale, zero_point, relu
        return layer(x)

    return function


def _linear_dynamic(packed: Any, reduce_range: bool, x: Any) -> Any:
    return dynamic.Linear.forward(packed.layer, x, reduce_range)


def _forward_dynamic(relu: bool) -> Callable[..., Any]:
    def function(x, packed, reduce_range=False):
        out = _linear_dynamic(packed, reduce_range, x)
        return out.relu() if relu else out

    return function


def _pack_linear(weight, bias=None):
    layer = modules.Linear(weight.shape[1], weight.shape[0], bias is not None)
    layer.set_weight_bias(weight, bias)
    return classes.quantized.LinearPackedParamsBase(weight, bias, layer)


def _pack_conv(kind: type, packed: str) -> Callable[..., Any]:
    def function(weight, bias, stride, padding, dilation, groups):
        channels = weight.shape[1] * groups, weight.shape[0]
        size = weight.shape[2:]
        layer = kind(*channels, size, stride, padding, dilation, groups, bias is not None)
        layer.set_weight_bias(weight, bias)
        return getattr(classes.quantized, packed)(weight, bias, layer)

    return function


def _define_layers() -> None:
    linear = f"{_CLASS}LinearPackedParamsBase"
    _define(_ops, f"linear_prepack(Tensor W, Tensor? B=None) -> {linear}", _pack_linear)
    for dims, kind in enumerate((modules.Conv1d, modules.Conv2d, modules.Conv3d), 1):
        packed = f"Conv{max(dims, 2)}dPackedParamsBase"
        arguments = "Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation"
        schema = f"conv{dims}d_prepack({arguments}, int groups) -> {_CLASS}{packed}"
        _define(_ops, schema, _pack_conv(kind, packed))
        for suffix in ("", "_relu"):
            arguments = f"Tensor qx, {_CLASS}{packed} packed_weight, {_SCALE}"
            schema = f"conv{dims}d{suffix}.new({arguments}) -> Tensor"
            _define(_ops, schema, _forward(bool(suffix)))
    for suffix in ("", "_relu"):
        arguments = f"Tensor X, {linear} W_prepack"
        scale = "float Y_scale_i, int Y_zero_point_i"
        _define(_ops, f"linear{suffix}({arguments}, {scale}) -> Tensor", _forward(bool(suffix)))
        schema = f"linear{suffix}_dynamic({arguments}, bool reduce_range=False) -> Tensor"
        _define(_ops, schema, _forward_dynamic(bool(suffix)))
    for name in ("linear_unpack", "linear_unpack_fp16"):
        schema = f"{name}({linear} W_prepack) -> (Tensor W_origin, Tensor? B_origin)"
        _define(_ops, schema, lambda packed: packed.unpack())
    _define(_ops, f"linear_prepack_fp16(Tensor W, Tensor? B=None) -> {linear}", _pack_linear)


# ---- recurrent layers ----


def _cell(params: Any) -> Any:
    """What the parameters of a cell make of inputs, and of a state, for the gates."""
    kind, _, _, numbers, weights = params.state
    if kind != "quantized_dynamic":
        raise NotImplementedError(f"recurrent layers of weights of the kind {kind} are not there")
    return tuple(functools.partial(_linear_dynamic, w, bool(numbers[0])) for w in weights)


def _layers(x, sizes, begin, params, bidirectional, dropout, train):
    """`dynamic.recurrent` of the parameters that an archive has."""
    cells = [_cell(one) for one in params]
    dropout = dropout if train else 0.0
    out, last = dynamic.recurrent(x, sizes, begin, cells, bidirectional, dropout)
    return (out, *last)


def _of_tensor(input, hx, params, biases, layers, dropout, train, both, batch_first, **kinds):
    x = input.transpose(0, 1) if batch_first else input
    sizes = [x.shape[1]] * x.shape[0]
    begin = hx if isinstance(hx, list | tuple) else [hx]
    out, *last = _layers(x.flatten(0, 1), sizes, begin, params, both, dropout, train)
    out = out.unflatten(0, x.shape[:2])
    return (out.transpose(0, 1) if batch_first else out, *last)


def _of_packed(data, batch_sizes, hx, params, biases, layers, dropout, train, both, **kinds):
    begin = hx if isinstance(hx, list | tuple) else [hx]
    return _layers(data, batch_sizes.tolist(), begin, params, both, dropout, train)


def _one_step(step: Callable[..., Any]) -> Callable[..., Any]:
    def function(x, hx, w_ih, w_hh, bias_ih, bias_hh):
        first = hx[0] if isinstance(hx, list | tuple) else hx
        gates = (_linear_dynamic(w_ih, True, x), _linear_dynamic(w_hh, True, first))
        return step(*gates, hx)

    return function


def _pack_cell(w_ih, w_hh, bias_ih, bias_hh, reduce_range=False):
    biases, numbers = [bias_ih, bias_hh], [int(reduce_range)]
    return classes.rnn.CellParamsBase(("quantized_dynamic", biases, [], numbers, [w_ih, w_hh]))


def _define_recurrent() -> None:
    cell = "__torch__.torch.classes.rnn.CellParamsBase"
    linear = f"{_CLASS}LinearPackedParamsBase"
    sizes = f"{cell}[] params, bool has_biases, int num_layers, float dropout, bool train"
    kinds = "*, int? dtype=None, bool use_dynamic=False"  # a dtype by its number in archives
    for name, states, more, results in (
        ("lstm", "Tensor[] hx", f", {kinds}", "(Tensor, Tensor, Tensor)"),
        ("gru", "Tensor hx", "", "(Tensor, Tensor)"),
    ):
        given = f"{states}, {sizes}, bool bidirectional"
        schema = f"quantized_{name}.input(Tensor input, {given}, bool batch_first{more})"
        _define(_aten, f"{schema} -> {results}", _of_tensor)
        schema = f"quantized_{name}.data(Tensor data, Tensor batch_sizes, {given}{more})"
        _define(_aten, f"{schema} -> {results}", _of_packed)
    weights = f"{linear} w_ih, {linear} w_hh, Tensor bias_ih, Tensor bias_hh"
    for name, states, results, step in (
        ("lstm", "Tensor[] hx", "(Tensor, Tensor)", lambda x, h, hx: dynamic._lstm(x, h, hx[1])),
        ("gru", "Tensor hx", "Tensor", dynamic._gru),
        ("rnn_relu", "Tensor hx", "Tensor", lambda x, h, hx: (x + h).relu()),
        ("rnn_tanh", "Tensor hx", "Tensor", lambda x, h, hx: (x + h).tanh()),
    ):
        schema = f"quantized_{name}_cell_dynamic(Tensor input, {states}, {weights}) -> {results}"
        _define(_ops, schema, _one_step(step))
    schema = f"make_quantized_cell_params_dynamic({weights}, bool reduce_range=False) -> {cell}"
    _define(_ops, schema, _pack_cell)


# ---- arithmetic ----


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of floats on quantised tensors, whose result gets a scale."""

    def of_quantized(a, b, scale, zero_point):
        made = function(a.dequantize(), b.dequantize())
        return _quantized.quantize_per_tensor(made, scale, zero_point, a.dtype)

    return of_quantized


def _hardswish(input, scale, zero_point):
    made = nn.functional.hardswish(input.dequantize())
    return _quantized.quantize_per_tensor(made, scale, zero_point, input.dtype)


def _cat(relu: bool) -> Callable[..., Any]:
    def function(tensors, dim, scale, zero_point):
        first = tensors[0]
        scale = first.q_scale() if scale is None else scale
        zero_point = first.q_zero_point() if zero_point is None else zero_point
        made = rushlight.cat([t.dequantize() for t in tensors], dim)
        made = made.relu() if relu else made
        return _quantized.quantize_per_tensor(made, scale, zero_point, first.dtype)

    return function


def _define_arithmetic() -> None:
    for name, function in (
        ("add", rushlight.add),
        ("add_relu", lambda a, b: rushlight.add(a, b).relu()),
        ("mul", rushlight.mul),
        ("mul_relu", lambda a, b: rushlight.mul(a, b).relu()),
        ("matmul", rushlight.matmul),
    ):
        schema = f"{name}(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor"
        _define(_ops, schema, _arithmetic(function))
    for suffix in ("", "_relu"):
        schema = f"cat{suffix}(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor"
        _define(_ops, schema, _cat(bool(suffix)))
    _define(_ops, f"hardswish(Tensor input, {_SCALE}) -> Tensor", _hardswish)


_define_tensors()
_define_layers()
_define_recurrent()
_define_arithmetic()
