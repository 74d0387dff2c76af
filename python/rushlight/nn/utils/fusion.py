"""Fusion of a layer and the batch norm that follows it, for evaluation."""

from __future__ import annotations

import copy
from typing import TypeVar

import rushlight
from rushlight import Tensor

from ..parameter import Parameter

_Module = TypeVar("_Module", bound="rushlight.nn.Module")

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _check_eval(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion requires running statistics")


def _with_parameters(layer, bn, fuse, *options):
    """A copy of a layer whose weight and bias are those that `fuse` gives."""
    _check_eval(layer, bn)
    copied = copy.deepcopy(layer)
    statistics = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    copied.weight, copied.bias = fuse(copied.weight, copied.bias, *statistics, *options)
    return copied


def fuse_conv_bn_eval(conv: _Module, bn: _Module, transpose: bool = False) -> _Module:
    """Fuse `conv` and `bn`, both in evaluation mode, into one convolution.

    Args:
        conv: the convolution.
        bn: the batch norm behind it.
        transpose: whether the convolution is a transposed one.

    Example:
        >>> conv, norm = torch.nn.Conv2d(3, 4, 1).eval(), torch.nn.BatchNorm2d(4).eval()
        >>> torch.nn.utils.fuse_conv_bn_eval(conv, norm)
        Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
    """
    return _with_parameters(conv, bn, fuse_conv_bn_weights, transpose)


def _fuse(weight, bias, mean, var, eps, scale, shift, shape):
    bias_dtype = weight.dtype if bias is None else bias.dtype
    bias = rushlight.zeros_like(mean) if bias is None else bias
    scale = rushlight.ones_like(mean) if scale is None else scale
    shift = rushlight.zeros_like(mean) if shift is None else shift
    factor = scale * rushlight.rsqrt(var + eps)
    new_weight = (weight * factor.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - mean) * factor + shift).to(bias_dtype)
    return Parameter(new_weight, weight.requires_grad), Parameter(new_bias, bias.requires_grad)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of the fused convolution; None means no bias, scale or shift.

    Args:
        conv_w: the convolution's weight.
        conv_b: its bias.
        bn_rm, bn_rv: the running mean and variance.
        bn_eps: what is added to the variance.
        bn_w, bn_b: the scale and the shift.
        transpose: whether it is a transposed convolution.

    Example:
        >>> one = torch.ones(1)
        >>> weight, bias = torch.nn.utils.fuse_conv_bn_weights(
        ...     torch.ones(1, 1, 1, 1), None, one, one, 0.0, 2 * one, None
        ... )
        >>> weight.item(), bias.item()
        (2.0, -2.0)
    """
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fuse(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: _Module, bn: _Module) -> _Module:
    """Fuse `linear` and `bn`, both in evaluation mode, into one linear layer.

    Args:
        linear: the linear layer.
        bn: the batch norm behind it.

    Example:
        >>> torch.nn.utils.fuse_linear_bn_eval(
        ...     torch.nn.Linear(3, 4).eval(), torch.nn.BatchNorm1d(4).eval()
        ... )
        Linear(in_features=3, out_features=4, bias=True)
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    return _with_parameters(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of the fused linear layer.

    Args:
        linear_w: the layer's weight.
        linear_b: its bias.
        bn_rm, bn_rv: the running mean and variance.
        bn_eps: what is added to the variance.
        bn_w, bn_b: the scale and the shift.

    Example:
        >>> one = torch.ones(1)
        >>> weight, bias = torch.nn.utils.fuse_linear_bn_weights(
        ...     torch.ones(1, 1), one, one, one, 0.0, 2 * one, one
        ... )
        >>> weight.item(), bias.item()
        (2.0, 1.0)
    """
    return _fuse(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))
