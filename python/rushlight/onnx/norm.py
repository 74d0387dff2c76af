"""Lowerings of normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


def _vector(g: Builder, given: Value | None, size: int, number: float, like: Value) -> Value:
    """A weight or bias of each channel, where none is given."""
    return g.full([size], number, like.dtype) if given is None else given


def _channels(g: Builder, x: Value) -> int:
    size = g.size(x, 1)
    if not isinstance(size, int):
        raise Unsupported("the number of channels is not constant")
    return size


def _along_channels(g: Builder, v: Value, x: Value) -> Value:
    """A vector of the channels in a shape that broadcasts with a tensor."""
    return g.unsqueeze(v, *range(1, x.rank - 1))


def _moments(g: Builder, x: Value, dims: Sequence[int]) -> tuple[Value, Value]:
    """The mean and the biased variance over dimensions, which stay as 1."""
    mean = g.ReduceMean(x, list(dims), keepdims=1)
    apart = g.Sub(x, mean)
    return mean, g.ReduceMean(g.Mul(apart, apart), list(dims), keepdims=1)


def _normalized(g: Builder, x: Value, mean: Value, var: Value, eps: float) -> Value:
    return g.Div(g.Sub(x, mean), g.Sqrt(g.Add(var, eps)))


@lowers("aten.batch_norm.default")
def batch_norm(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    eps: float,
) -> Value:
    channels = _channels(g, input)
    scale = _vector(g, weight, channels, 1, input)
    shift = _vector(g, bias, channels, 0, input)
    if training or running_mean is None:
        dims = [0, *range(2, input.rank)]
        x = _normalized(g, input, *_moments(g, input, dims), eps)
        scale, shift = _along_channels(g, scale, input), _along_channels(g, shift, input)
        return g.Add(g.Mul(x, scale), shift)
    return g.BatchNormalization(
        input, scale, shift, running_mean, running_var, epsilon=eps, shape=input.shape
    )


@lowers("aten._native_batch_norm_legit_no_training.default")
def batch_norm_no_training(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    eps: float,
) -> tuple[Value, ...]:
    out = batch_norm(g, input, weight, bias, running_mean, running_var, False, eps)
    return out, *(g.constant(rushlight.zeros(0, dtype=part.dtype)) for part in g.parts[1:])


@lowers("aten.instance_norm.default")
def instance_norm(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    eps: float,
) -> Value:
    if not use_input_stats:
        return batch_norm(g, input, weight, bias, running_mean, running_var, False, eps)
    channels = _channels(g, input)
    scale = _vector(g, weight, channels, 1, input)
    shift = _vector(g, bias, channels, 0, input)
    return g.InstanceNormalization(input, scale, shift, epsilon=eps)


@lowers("aten.group_norm.default")
def group_norm(
    g: Builder,
    input: Value,
    num_groups: int,
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> Value:
    channels = _channels(g, input)
    if g.since(21) and input.rank > 2:  # the op of version 18 scales groups, not channels
        scale = _vector(g, weight, channels, 1, input)
        shift = _vector(g, bias, channels, 0, input)
        return g.GroupNormalization(input, scale, shift, num_groups=num_groups, epsilon=eps)
    assert input.shape is not None
    ones = g.full([num_groups], 1, input.dtype)
    zeros = g.full([num_groups], 0, input.dtype)
    x = g.reshape(input, [input.shape[0], num_groups, -1])
    x = g.InstanceNormalization(x, ones, zeros, epsilon=eps)
    x = g.reshape(x, input.shape)
    if weight is not None:
        x = g.Mul(x, _along_channels(g, weight, input))
    return x if bias is None else g.Add(x, _along_channels(g, bias, input))


@lowers("aten.native_group_norm.default")
def native_group_norm(
    g: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    group: int,
    eps: float,
) -> tuple[Value | None, ...]:
    return group_norm(g, input, group, weight, bias, eps), None, None


def _layer_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
    outputs: int,
):
    scale = g.full(normalized_shape, 1, input.dtype) if weight is None else weight
    return g.LayerNormalization(
        input, scale, bias, axis=-len(normalized_shape), epsilon=eps, outputs=outputs
    )


@lowers("aten.layer_norm.default")
def layer_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> Value:
    return _layer_norm(g, input, normalized_shape, weight, bias, eps, 1)


@lowers("aten.native_layer_norm.default")
def native_layer_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Value, Value, Value]:
    return _layer_norm(g, input, normalized_shape, weight, bias, eps, 3)


@lowers("aten.rms_norm.default")
def rms_norm(
    g: Builder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    eps: float | None,
) -> Value:
    eps = rushlight.finfo(input.dtype).eps if eps is None else eps
    dims = list(range(-len(normalized_shape), 0))
    square = g.ReduceMean(g.Mul(input, input), dims, keepdims=1)
    x = g.Div(input, g.Sqrt(g.Add(square, eps)))
    return x if weight is None else g.Mul(x, weight)
