"""Layers for quantisation-aware training: their weights are rounded to codes in every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import nn
from rushlight.ao.nn.intrinsic.modules import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU

if TYPE_CHECKING:
    from rushlight.types import Device


__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]


def _check(cls: type, mod: Any, *kinds: type) -> None:
    if type(mod) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise AssertionError(
            f"nnq.{cls.__name__}.from_float only works for {wanted}, got {type(mod).__name__}"
        )
    if not getattr(mod, "qconfig", None):
        raise AssertionError("Input float module must have qconfig defined")


class _Rounds:
    """What the layers share: the fake quantisation of the weight, made by the qconfig."""

    qconfig: Any
    weight: Any
    weight_fake_quant: Any

    def _set_qconfig(self, qconfig: Any) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        device = self.weight.device
        self.weight_fake_quant = (
            qconfig.weight(factory_kwargs={"device": device})
            if (device.type != "cpu")
            else qconfig.weight()
        )


class Linear(_Rounds, nn.Linear):
    """`nn.Linear` with a rounded weight.

    Args:
        in_features: size of the inputs.
        out_features: size of the results.
        bias: whether a bias is added.
        qconfig: makes the fake quantisation of the weight.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> from rushlight.ao import quantization
        >>> config = quantization.get_default_qat_qconfig()
        >>> layer = torch.ao.nn.qat.Linear(4, 2, qconfig=config)
        >>> layer(torch.ones(1, 4)).shape
        torch.Size([1, 2])
        >>> layer.weight_fake_quant.dtype
        torch.qint8
    """

    _FLOAT_MODULE = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Device = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self._set_qconfig(qconfig)

    def forward(self, input):
        return nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the layer from a float layer, with the same parameters.

        Args:
            mod: an `nn.Linear` with a `qconfig`, or one with relu behind it.
            use_precomputed_fake_quant: take over the fake quantisation that `mod` has.
        """
        _check(cls, mod, cls._FLOAT_MODULE, LinearReLU)
        linear = mod[0] if isinstance(mod, LinearReLU) else mod
        made = cls(
            linear.in_features,
            linear.out_features,
            bias=linear.bias is not None,
            qconfig=mod.qconfig,
        )
        made.weight, made.bias = linear.weight, linear.bias
        return _keep_observer(made, linear, use_precomputed_fake_quant)

    def to_float(self):
        """Make the float layer with the same parameters."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        made.weight, made.bias = self.weight, self.bias
        made.train(self.training)
        return made


def _keep_observer(made: Any, mod: Any, keep: bool) -> Any:
    if keep and hasattr(mod, "weight_fake_quant"):
        made.weight_fake_quant = mod.weight_fake_quant
    made.train(mod.training)
    return made


class _ConvNd(_Rounds, nn.modules.conv._ConvNd):
    _FLOAT_MODULE: Any
    _RELU: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        qconfig: Any = None,
        device: Device = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        self._FLOAT_MODULE.__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self._set_qconfig(qconfig)

    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float one, on the same parameters.

        Args:
            mod: a convolution with a `qconfig`, or one with relu behind it.
            use_precomputed_fake_quant: take over the fake quantisation that `mod` has.
        """
        _check(cls, mod, cls._FLOAT_MODULE, cls._RELU)
        conv = mod[0] if isinstance(mod, cls._RELU) else mod
        made = cls(**_sizes(conv), qconfig=mod.qconfig)
        made.weight, made.bias = conv.weight, conv.bias
        return _keep_observer(made, conv, use_precomputed_fake_quant)

    def to_float(self):
        """The float layer on the same parameters."""
        made = self._FLOAT_MODULE(**_sizes(self))
        made.weight, made.bias = self.weight, self.bias
        made.train(self.training)
        return made


def _sizes(conv: Any) -> dict[str, Any]:
    """The arguments that make a convolution like this one."""
    return {
        "in_channels": conv.in_channels,
        "out_channels": conv.out_channels,
        "kernel_size": conv.kernel_size,
        "stride": conv.stride,
        "padding": conv.padding,
        "dilation": conv.dilation,
        "groups": conv.groups,
        "bias": conv.bias is not None,
        "padding_mode": conv.padding_mode,
    }


class Conv1d(_ConvNd, nn.Conv1d):
    """`nn.Conv1d` with a rounded weight; it has the same arguments, and `qconfig`.

    Args:
        qconfig: makes the fake quantisation of the weight.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = nn.Conv1d
    _RELU = ConvReLU1d


class Conv2d(_ConvNd, nn.Conv2d):
    """`nn.Conv2d` with a rounded weight; it has the same arguments, and `qconfig`.

    Args:
        qconfig: makes the fake quantisation of the weight.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = nn.Conv2d
    _RELU = ConvReLU2d


class Conv3d(_ConvNd, nn.Conv3d):
    """`nn.Conv3d` with a rounded weight; it has the same arguments, and `qconfig`.

    Args:
        qconfig: makes the fake quantisation of the weight.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = nn.Conv3d
    _RELU = ConvReLU3d


def _check_rows(qconfig: Any, name: str) -> None:
    if qconfig and qconfig.weight().qscheme is not rushlight.per_channel_affine_float_qparams:
        raise AssertionError(
            f"{name} weights requires a qscheme of torch.per_channel_affine_float_qparams Got "
            f"{qconfig.weight().qscheme}"
        )


class Embedding(_Rounds, nn.Embedding):
    """`nn.Embedding` with a rounded weight; it has the same arguments, and `qconfig`.

    Args:
        qconfig: makes the fake quantisation of the weight.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = nn.Embedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, *args, qconfig: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, *args, **kwargs)
        _check_rows(qconfig, "Embedding")
        self._set_qconfig(qconfig)

    def forward(self, input):
        return nn.functional.embedding(
            input,
            self.weight_fake_quant(self.weight),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the layer from a float layer with the same weight; arguments as above."""
        _check(cls, mod, cls._FLOAT_MODULE)
        made = cls(
            mod.num_embeddings,
            mod.embedding_dim,
            mod.padding_idx,
            mod.max_norm,
            mod.norm_type,
            mod.scale_grad_by_freq,
            mod.sparse,
            mod.weight,
            qconfig=mod.qconfig,
        )
        return _keep_observer(made, mod, use_precomputed_fake_quant)

    def to_float(self):
        """Make the float layer with the same weight."""
        return nn.Embedding(
            self.num_embeddings,
            self.embedding_dim,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
            self.weight,
        ).train(self.training)


class EmbeddingBag(_Rounds, nn.EmbeddingBag):
    """`nn.EmbeddingBag` with a rounded weight; it has the same arguments, and `qconfig`.

    Args:
        qconfig: makes the fake quantisation of the weight.

    For an example see `ao.nn.qat.Linear`.
    """

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, *args, qconfig: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, *args, **kwargs)
        _check_rows(qconfig, "Embedding Bag")
        self._set_qconfig(qconfig)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return nn.functional.embedding_bag(
            input,
            self.weight_fake_quant(self.weight),
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the layer from a float layer with the same weight; arguments as above."""
        _check(cls, mod, cls._FLOAT_MODULE)
        made = cls(**_bag(mod), qconfig=mod.qconfig)
        return _keep_observer(made, mod, use_precomputed_fake_quant)

    def to_float(self):
        """Make the float layer with the same weight."""
        return nn.EmbeddingBag(**_bag(self)).train(self.training)


def _bag(mod: Any) -> dict[str, Any]:
    return {
        "num_embeddings": mod.num_embeddings,
        "embedding_dim": mod.embedding_dim,
        "max_norm": mod.max_norm,
        "norm_type": mod.norm_type,
        "scale_grad_by_freq": mod.scale_grad_by_freq,
        "mode": mod.mode,
        "sparse": mod.sparse,
        "_weight": mod.weight,
        "include_last_offset": mod.include_last_offset,
        "padding_idx": mod.padding_idx,
    }
