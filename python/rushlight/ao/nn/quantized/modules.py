"""Quantised layers: their inputs and results are quantised tensors.

What they compute is exact: products and sums of codes as whole numbers, then one multiplication and
one rounding. `set_weight_bias` takes the weight as a quantised
tensor; the state holds `weight`, `bias`, `scale` and `zero_point`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C, nn
from rushlight._quantized import (
    QuantizedTensor,
    of_codes,
    per_tensor_affine,
    quantize_per_tensor,
)
from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.quantized._arithmetic import FloatFunctional, FXFloatFunctional, QFunctional
from rushlight.ao.nn.quantized._weights import PackedWeight, integer_weight, steps_of

if TYPE_CHECKING:
    from rushlight.types import Device


__all__ = [
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "DeQuantize",
    "Dropout",
    "FXFloatFunctional",
    "FloatFunctional",
    "Linear",
    "QFunctional",
    "Quantize",
    "ReLU6",
]


class Quantize(nn.Module):
    """Quantises floats with a given scale.

    Args:
        scale: what a step of the codes is.
        zero_point: the code of 0.
        dtype: the dtype of the codes.

    Example:
        >>> codes = torch.ao.nn.quantized.Quantize(0.1, 10, torch.quint8)(torch.tensor([0.52]))
        >>> codes.int_repr(), torch.ao.nn.quantized.DeQuantize()(codes)
        (tensor([15], dtype=torch.uint8), tensor([0.5000]))
    """

    scale: Any
    zero_point: Any

    def __init__(self, scale: Any, zero_point: Any, dtype: rushlight.dtype) -> None:
        super().__init__()
        self.register_buffer("scale", rushlight.tensor([float(scale)]))
        self.register_buffer("zero_point", rushlight.tensor([int(zero_point)]))
        self.dtype = dtype

    def forward(self, X):
        return quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Make the module from a `QuantStub` with an observer."""
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(float(scale), int(zero_point), mod.activation_post_process.dtype)

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Converts quantised tensors to floats.

    For an example see `ao.nn.quantized.Quantize`.
    """

    def forward(self, Xq):
        return Xq.dequantize()

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Make the module from a `DeQuantStub`."""
        return DeQuantize()


# ---- layers with a weight ----


def quantized_weight(observer: Any, weight: Any, chosen: bool = False) -> Any:
    """Quantise a weight as its observer says."""
    if not chosen:
        observer(weight)
    scale, zero_point = observer.calculate_qparams()
    if observer.dtype != rushlight.qint8:
        raise AssertionError("Weight observer must have a dtype of qint8")
    axis = getattr(observer, "ch_axis", None)
    if scale.numel() > 1 or (axis is not None and axis >= 0 and _by_channels(observer)):
        return rushlight.quantize_per_channel(
            weight.detach().float(), scale.double(), zero_point.long(), axis, rushlight.qint8
        )
    return quantize_per_tensor(
        weight.detach().float(), float(scale), int(zero_point), rushlight.qint8
    )


def _layer_and_observers(mod: Any) -> tuple[Any, Any, Any]:
    """A layer, which may be the first part of a fused one; who observes its weight and results."""
    layer = mod[0] if isinstance(mod, intrinsic.modules._FusedModule) else mod
    observer = getattr(layer, "weight_fake_quant", None) or mod.qconfig.weight()
    return layer, observer, mod.activation_post_process


def _by_channels(observer: Any) -> bool:
    return observer.qscheme in (rushlight.per_channel_affine, rushlight.per_channel_symmetric)


class _Layer(nn.Module):
    """What layers share: a packed weight, and the scale of their results."""

    _qweight: Any
    _qbias: Any
    _packed: PackedWeight | None
    scale: float
    zero_point: int
    groups = 1
    _relu = False

    def set_weight_bias(self, w, b):
        """The weight, quantised by `qint8`, and the bias or None."""
        if not isinstance(w, QuantizedTensor):
            raise RuntimeError("the weight of a quantized layer is a quantized tensor")
        self._qweight, self._qbias = w, b
        self._packed = PackedWeight.of(w, b, self.groups)

    def _weight_bias(self):
        return self._qweight, self._qbias

    def weight(self):
        """The quantised weight."""
        return self._qweight

    def bias(self):
        """The bias, or None."""
        return self._qbias

    # What a layer keeps in a state: by name, how it is read.
    def _state_entries(self) -> dict[str, Any]:
        return {
            "weight": self._qweight,
            "bias": self._qbias,
            "scale": rushlight.tensor(self.scale),
            "zero_point": rushlight.tensor(self.zero_point),
        }

    def _take(self, found: dict[str, Any]) -> None:
        if "weight" in found:
            self.set_weight_bias(found["weight"], found["bias"])
        self.scale = float(found["scale"])
        self.zero_point = int(found["zero_point"])

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, value in self._state_entries().items():
            destination[prefix + name] = value

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, *others
    ):
        names = self._state_entries()
        missing = [prefix + name for name in names if prefix + name not in state_dict]
        if missing:
            missing_keys.extend(missing)
            return
        self._take({name: state_dict.pop(prefix + name) for name in names})
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, *others
        )

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = {**self.__dict__}
        return made

    def _multiply(self, codes: Any, input: Any, *window: Any) -> Any:
        """Codes of the result; those of the input have their channels last."""
        assert self._packed is not None
        return _C.ops._int8_convolution(
            codes,
            input.q_scale(),
            input.q_zero_point(),
            *self._packed,
            self._relu,
            self.scale,
            self.zero_point,
            *window,
            self.groups,
        )

    def _with(self, weight: Any, bias: Any, results: Any) -> Any:
        """The layer with a quantised weight, and the scale of results that were observed."""
        self.set_weight_bias(weight, _float_bias(bias))
        scale, zero_point = results.calculate_qparams()
        self.scale, self.zero_point = float(scale), int(zero_point)
        return self

    def _result(self, codes: Any) -> Any:
        return of_codes(codes, per_tensor_affine, float(self.scale), int(self.zero_point))

    def _round(self, sums: Any, input: Any, channel: int) -> Any:
        """The result from sums of products in float64, which any weight and input have."""
        steps, _ = steps_of(self._qweight)
        factor = steps * float(rushlight.tensor(input.q_scale()))
        shape = [1] * sums.dim()
        shape[channel] = -1
        if self._qbias is not None:
            sums = sums.float() + (self._qbias.detach().float() / factor).reshape(shape)
        scaled = sums * (factor / self.scale).reshape(shape)
        codes = scaled.float().round_() + self.zero_point
        first, last = (0, 255) if input.dtype == rushlight.quint8 else (-128, 127)
        codes = codes.clamp_(max(first, self.zero_point) if self._relu else first, last)
        return self._result(codes.to(input._codes.dtype))


def _has_codes_of_8_bits(input: Any) -> bool:
    return input.dtype in (rushlight.quint8, rushlight.qint8)


class Linear(_Layer):
    """A quantised linear layer.

    Args:
        in_features: size of the inputs.
        out_features: size of the results.
        bias_: whether a bias is added.
        dtype: the dtype of the weight, `qint8`.

    Example:
        >>> x = torch.quantize_per_tensor(torch.ones(1, 4), 0.1, 0, torch.quint8)
        >>> y = torch.ao.nn.quantized.Linear(4, 2)(x)
        >>> y.dtype, y.shape
        (torch.quint8, torch.Size([1, 2]))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        dtype: rushlight.dtype = rushlight.qint8,
    ) -> None:
        super().__init__()
        if dtype != rushlight.qint8:
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point = 1.0, 0
        weight = rushlight._empty_affine_quantized(
            [out_features, in_features], scale=1, zero_point=0, dtype=dtype
        )
        weight._codes.zero_()
        self.set_weight_bias(weight, rushlight.zeros(out_features) if bias_ else None)

    def _get_name(self):
        return "QuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, "
            f"qscheme={self._qweight.qscheme()}"
        )

    def _state_entries(self):
        # A linear layer's weight and bias are one entry in PyTorch's files.
        return {
            "scale": rushlight.tensor(self.scale),
            "zero_point": rushlight.tensor(self.zero_point),
            "_packed_params.dtype": rushlight.qint8,
            "_packed_params._packed_params": (self._qweight, self._qbias),
        }

    def _take(self, found):
        super()._take(found)
        self.set_weight_bias(*found["_packed_params._packed_params"])

    def forward(self, x):
        if self._packed is not None and _has_codes_of_8_bits(x):
            return self._result(self._multiply(x._codes, x, [], [], [], []))
        codes = x._codes.double() - x.q_zero_point()
        return self._round(codes @ integer_weight(self._qweight).t(), x, -1)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the layer from a float layer with observers, or from one for quantisation-aware
        training.
        """
        layer, observer, results = _layer_and_observers(mod)
        made = cls(layer.in_features, layer.out_features)
        weight = quantized_weight(observer, layer.weight, use_precomputed_fake_quant)
        return made._with(weight, layer.bias, results)


def _float_bias(bias: Any) -> Any:
    return None if bias is None else bias.detach().float()


class _ConvNd(_Layer):
    _call: Any
    _dims: int

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
    ) -> None:
        super().__init__()
        if padding_mode not in ("zeros", "reflect"):
            raise NotImplementedError(f"quantized convolutions pad by zeros, not {padding_mode}")

        def each(value):
            return tuple(value) if isinstance(value, list | tuple) else (value,) * self._dims

        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = each(kernel_size), each(stride)
        self.padding = padding if isinstance(padding, str) else each(padding)
        self.dilation, self.padding_mode = each(dilation), padding_mode
        self.scale, self.zero_point = 1.0, 0
        weight = rushlight._empty_affine_quantized(
            [out_channels, in_channels // groups, *self.kernel_size],
            scale=1,
            zero_point=0,
            dtype=rushlight.qint8,
        )
        weight._codes.zero_()
        self.set_weight_bias(weight, rushlight.zeros(out_channels) if bias else None)

    def _get_name(self):
        return f"QuantizedConv{self._dims}d"

    def extra_repr(self):
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        )
        if self.padding != (0,) * self._dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._dims:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text + ("" if self._qbias is not None else ", bias=False")

    def forward(self, input):
        plain = self.padding_mode == "zeros" and not isinstance(self.padding, str)
        batched = input.dim() == self._dims + 2
        if self._packed is not None and plain and batched and _has_codes_of_8_bits(input):
            codes = input._codes.movedim(1, -1)
            window = self.kernel_size, self.stride, self.padding, self.dilation
            return self._result(self._multiply(codes, input, *window).movedim(-1, 1))
        return self._round(self._sums(input), input, -1 - self._dims)

    def _sums(self, input: Any) -> Any:
        codes = input._codes.double() - input.q_zero_point()
        padding = self.padding
        if self.padding_mode == "reflect":
            sides: Any = [p for p in reversed(self.padding) for _ in range(2)]
            codes, padding = nn.functional.pad(codes, sides, mode="reflect"), 0
        weight = integer_weight(self._qweight)
        return self._call(codes, weight, None, self.stride, padding, self.dilation, self.groups)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float one with observers, or of one that was trained for it."""
        from rushlight.nn.utils.fusion import fuse_conv_bn_weights

        mod, observer, results = _layer_and_observers(mod)
        weight, bias = mod.weight, mod.bias
        if (norm := getattr(mod, "bn", None)) is not None:
            weight, bias = fuse_conv_bn_weights(
                weight,
                bias,
                norm.running_mean,
                norm.running_var,
                norm.eps,
                norm.weight,
                norm.bias,
            )
        made = cls(
            mod.in_channels,
            mod.out_channels,
            mod.kernel_size,
            mod.stride,
            mod.padding,
            mod.dilation,
            mod.groups,
            bias is not None,
            mod.padding_mode,
        )
        weight = quantized_weight(observer, weight, use_precomputed_fake_quant)
        return made._with(weight, bias, results)


class Conv1d(_ConvNd):
    """A quantised 1-d convolution; it has the arguments of `nn.Conv1d`.

    For an example see `ao.nn.quantized.Linear`.
    """

    _call = staticmethod(nn.functional.conv1d)
    _dims = 1


class Conv2d(_ConvNd):
    """A quantised 2-d convolution; it has the arguments of `nn.Conv2d`.

    For an example see `ao.nn.quantized.Linear`.
    """

    _call = staticmethod(nn.functional.conv2d)
    _dims = 2


class Conv3d(_ConvNd):
    """A quantised 3-d convolution; it has the arguments of `nn.Conv3d`.

    For an example see `ao.nn.quantized.Linear`.
    """

    _call = staticmethod(nn.functional.conv3d)
    _dims = 3


# ---- layers without ----


class ReLU6(nn.ReLU6):
    """Clamps codes to those of 0 and 6.

    Example:
        >>> x = torch.quantize_per_tensor(torch.tensor([-1.0, 3.0, 9.0]), 0.1, 20, torch.quint8)
        >>> torch.ao.nn.quantized.ReLU6()(x).dequantize()
        tensor([0., 3., 6.])
    """

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Make the layer from a float layer."""
        return ReLU6(mod.inplace)


class Dropout(nn.Dropout):
    """Returns its input: dropout is a no-op in evaluation.

    For an example see `ao.quantization.quantize`.
    """

    def forward(self, input):
        return input

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Make the layer from a float layer."""
        return cls(mod.p, mod.inplace)


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    """A batch norm by running statistics, of codes."""

    scale: Any
    zero_point: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        device: Device = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, True, True, device, dtype)
        self.register_buffer("scale", rushlight.tensor(1.0))
        self.register_buffer("zero_point", rushlight.tensor(0))

    def forward(self, input):
        out = nn.functional.batch_norm(
            input.dequantize(),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            False,
            0.0,
            self.eps,
        )
        return quantize_per_tensor(
            out.detach(), float(self.scale), int(self.zero_point), input.dtype
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float one with an observer."""
        observers = mod.activation_post_process
        norm = mod[0] if isinstance(mod, intrinsic.modules._FusedModule) else mod
        made: Any = cls(norm.num_features, norm.eps)
        made.weight, made.bias = norm.weight, norm.bias
        made.running_mean, made.running_var = norm.running_mean, norm.running_var
        scale, zero_point = observers.calculate_qparams()
        made.scale, made.zero_point = scale.reshape(()), zero_point.reshape(())
        return made.eval()


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """A quantised 2-d batch norm with running statistics.

    For an example see `ao.quantization.quantize`.
    """


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    """A quantised 3-d batch norm with running statistics.

    For an example see `ao.quantization.quantize`.
    """
