"""Fused layers for quantisation-aware training, with rounded weights and folded batch norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.qat import modules as qat
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearReLU",
    "freeze_bn_stats",
    "update_bn_stats",
]


class _ReLU:
    """Before another base: its results are those of that base, after relu."""

    def forward(self, input):
        """The result of the other base, after relu."""
        return nn.functional.relu(super().forward(input))  # pyright: ignore


class _WithNorm(qat._Rounds, nn.Module):
    """A layer and its batch norm, in one: the weight that is rounded is the one with the norm's
    scale in it, by the running variance. In training the result is divided by that scale again
    and normalised by the batch, so that statistics are those of the float network.

    Args:
        eps: the eps of the norm.
        momentum: the momentum of the norm.
        freeze_bn: normalise by the running statistics.
        qconfig: makes the fake quantisation of the weight.
    """

    bn: Any
    bias: Any

    def _norm_by(self, norm: Any, freeze_bn: bool, qconfig: Any) -> None:
        self.bn = norm
        self._set_qconfig(qconfig)
        self.freeze_bn = freeze_bn if self.training else True
        if self.training and freeze_bn:
            self.bn.training = False

    def _share(self, layer: Any, norm: Any) -> None:
        """Takes the parameters of a float layer, and what its norm has."""
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self.bn, name, getattr(norm, name))

    def _copy_to(self, layer: Any) -> None:
        """Gives a float layer parameters of its own with these values."""
        layer.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            layer.bias = nn.Parameter(self.bias.detach())

    def reset_running_stats(self):
        """Forgets the statistics of the norm."""
        self.bn.reset_running_stats()

    def update_bn_stats(self):
        """Normalises by the batch from now on."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self):
        """Normalises by the running statistics from now on."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode=True):
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _call_with_norm(self, input: Any, channel: int, call: Any) -> Any:
        factor = self.bn.weight / rushlight.sqrt(self.bn.running_var + self.bn.eps)
        weight = factor.reshape([-1] + [1] * (self.weight.dim() - 1))
        rounded = self.weight_fake_quant(self.weight * weight)
        zero = rushlight.zeros_like(factor if self.bias is None else self.bias).to(input.dtype)
        shape = [1] * input.dim()
        shape[channel] = -1
        out = call(input, rounded, zero) / factor.reshape(shape)
        if self.bias is not None:
            out = out + self.bias.reshape(shape)
        return self.bn(out)


class _ConvBnNd(_WithNorm, nn.modules.conv._ConvNd):
    _FLOAT_MODULE: Any
    _CONV: Any
    _NORM: Any
    _RELU_KIND: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool | None = None,
        padding_mode: str = "zeros",
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        self._CONV.__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bool(bias),
            padding_mode,
        )
        self._norm_by(self._NORM(out_channels, eps, momentum, True, True), freeze_bn, qconfig)

    def forward(self, input):
        return self._call_with_norm(input, 1, self._conv_forward)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float one, on the same parameters.

        Args:
            mod: a fused module with a `qconfig`.
            use_precomputed_fake_quant: take over the fake quantisation that the layer has.
        """
        qat._check(cls, mod, cls._FLOAT_MODULE)
        conv, norm = mod[0], mod[1]
        made: Any = cls(
            **qat._sizes(conv),
            eps=norm.eps,
            momentum=norm.momentum,
            freeze_bn=False,
            qconfig=mod.qconfig,
        )
        made._share(conv, norm)
        return qat._keep_observer(made, conv, use_precomputed_fake_quant)

    def to_float(self):
        """The float layer, norm folded in."""
        conv = self._CONV(**qat._sizes(self))
        self._copy_to(conv)
        made = fuse_conv_bn_eval(conv.eval(), self.bn.eval()).train(self.training)
        if self._RELU_KIND is None:
            return made
        return self._RELU_KIND(made, nn.ReLU()).train(self.training)


class ConvBn1d(_ConvBnNd, nn.Conv1d):
    """A 1-d convolution and its batch norm as one layer with a rounded weight.

    For an example see `ao.nn.intrinsic.qat.freeze_bn_stats`.
    """

    _FLOAT_MODULE = intrinsic.ConvBn1d
    _CONV = nn.Conv1d
    _NORM = nn.BatchNorm1d


class ConvBnReLU1d(_ReLU, ConvBn1d):
    """A 1-d convolution, its batch norm and relu as one layer with a rounded weight.

    For an example see `ao.nn.intrinsic.qat.freeze_bn_stats`.
    """

    _FLOAT_MODULE = intrinsic.ConvBnReLU1d
    _RELU_KIND = intrinsic.ConvReLU1d


class ConvBn2d(_ConvBnNd, nn.Conv2d):
    """A 2-d convolution and its batch norm as one layer with a rounded weight.

    For an example see `ao.nn.intrinsic.qat.freeze_bn_stats`.
    """

    _FLOAT_MODULE = intrinsic.ConvBn2d
    _CONV = nn.Conv2d
    _NORM = nn.BatchNorm2d


class ConvBnReLU2d(_ReLU, ConvBn2d):
    """A 2-d convolution, its batch norm and relu as one layer with a rounded weight.

    For an example see `ao.nn.intrinsic.qat.freeze_bn_stats`.
    """

    _FLOAT_MODULE = intrinsic.ConvBnReLU2d
    _RELU_KIND = intrinsic.ConvReLU2d


class ConvBn3d(_ConvBnNd, nn.Conv3d):
    """A 3-d convolution and its batch norm as one layer with a rounded weight.

    For an example see `ao.nn.intrinsic.qat.freeze_bn_stats`.
    """

    _FLOAT_MODULE = intrinsic.ConvBn3d
    _CONV = nn.Conv3d
    _NORM = nn.BatchNorm3d


class ConvBnReLU3d(_ReLU, ConvBn3d):
    """A 3-d convolution, its batch norm and relu as one layer with a rounded weight.

    For an example see `ao.nn.intrinsic.qat.freeze_bn_stats`.
    """

    _FLOAT_MODULE = intrinsic.ConvBnReLU3d
    _RELU_KIND = intrinsic.ConvReLU3d


class LinearBn1d(_WithNorm, nn.Linear):
    """A linear layer and its batch norm as one layer with a rounded weight.

    Args:
        in_features: size of the inputs.
        out_features: size of the results.
        bias: whether a bias is added.
        eps: the eps of the norm.
        momentum: the momentum of the norm.
        freeze_bn: normalise by the running statistics.
        qconfig: makes the fake quantisation of the weight.

    For an example see `ao.nn.qat.Linear`.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        nn.Linear.__init__(self, in_features, out_features, bias)
        norm = nn.BatchNorm1d(out_features, eps, momentum, True, True)
        self._norm_by(norm, freeze_bn, qconfig)

    def forward(self, input):
        return self._call_with_norm(input, -1, nn.functional.linear)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the layer from a float layer with the same parameters and arguments as above."""
        qat._check(cls, mod, intrinsic.LinearBn1d)
        linear, norm = mod[0], mod[1]
        made = cls(
            linear.in_features,
            linear.out_features,
            linear.bias is not None,
            norm.eps,
            norm.momentum,
            False,
            mod.qconfig,
        )
        made._share(linear, norm)
        return qat._keep_observer(made, linear, use_precomputed_fake_quant)

    def to_float(self):
        """Make the float layer, with the batch norm folded in."""
        linear = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        self._copy_to(linear)
        return fuse_linear_bn_eval(linear.eval(), self.bn.eval()).train(self.training)


class ConvReLU1d(_ReLU, qat.Conv1d):
    """A convolution with a rounded weight, and relu.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = intrinsic.ConvReLU1d


class ConvReLU2d(_ReLU, qat.Conv2d):
    """A convolution with a rounded weight, and relu.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = intrinsic.ConvReLU2d


class ConvReLU3d(_ReLU, qat.Conv3d):
    """A convolution with a rounded weight, and relu.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = intrinsic.ConvReLU3d


class LinearReLU(_ReLU, qat.Linear):
    """A linear layer with a rounded weight, and relu.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = intrinsic.LinearReLU


def update_bn_stats(mod: nn.Module):
    """Let the batch norm of `mod`, if it has one, normalise by the batch; for `apply`.

    Args:
        mod: any module, as `model.apply` gives it.

    For an example see `ao.nn.intrinsic.qat.freeze_bn_stats`.
    """
    if isinstance(mod, _WithNorm):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module):
    """Let the batch norm of `mod`, if it has one, normalise by running statistics; for `apply`.

    Args:
        mod: any module, as `model.apply` gives it.

    Example:
        >>> from rushlight.ao import quantization
        >>> from rushlight.ao.nn.intrinsic import qat
        >>> config = quantization.get_default_qat_qconfig()
        >>> layer = qat.ConvBn2d(3, 8, 3, qconfig=config)
        >>> _ = layer.apply(qat.freeze_bn_stats)
        >>> layer.freeze_bn, layer.bn.training
        (True, False)
    """
    if isinstance(mod, _WithNorm):
        mod.freeze_bn_stats()
