"""Quantised tensors: integer codes that stand for the numbers scale * (code - zero_point).

One scale and one zero point hold for the whole tensor, or one of each for every index of a
dimension. A quantised tensor has no memory of its own: it holds its codes as a plain tensor. What
moves elements acts on the codes, what keeps their order too; everything else refuses, as in
PyTorch, and programs say `dequantize()`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import rushlight
from rushlight import _C, Tensor
from rushlight._lazy import later
from rushlight._quantized.fake import choose_qparams
from rushlight.storage import CODES, TypedStorage

if TYPE_CHECKING:
    from typing import NoReturn

    from rushlight.types import _dtype

__all__ = [
    "QuantizedTensor",
    "choose_qparams_optimized",
    "dequantize",
    "int_repr",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "q_per_channel_axis",
    "q_per_channel_scales",
    "q_per_channel_zero_points",
    "q_scale",
    "q_zero_point",
    "qscheme",
    "quantize_per_channel",
    "quantize_per_tensor",
    "quantize_per_tensor_dynamic",
]

_rules = later("rushlight._rules.quantised")


class qscheme:
    """How the numbers of a tensor become codes.

    Args:
        name: as it is printed, without "torch.".

    Example:
        >>> torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8).qscheme()
        torch.per_tensor_affine
    """

    __module__ = "rushlight"

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:  # pickle and copy look the name up in the package
        return self._name


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")

# The dtypes of quantised tensors by that of their codes.
_NAMES = {codes: kind for kind, codes in CODES.items()}
_KINDS = {rushlight.qint8: "QInt8", rushlight.quint8: "QUInt8", rushlight.qint32: "QInt32"}


class _Quantizer(NamedTuple):
    """What codes mean: numbers for a whole tensor, tensors and a dimension for channels."""

    scheme: qscheme
    scale: Any
    zero_point: Any
    axis: int | None = None

    def along(self, codes: Tensor) -> tuple[Any, Any]:
        """Scale and zero point in float32, in a shape that meets the codes'."""
        if self.axis is None:
            scale = rushlight.tensor(self.scale, dtype=rushlight.float32, device=codes.device)
            return scale, self.zero_point
        shape = [-1 if i == self.axis else 1 for i in range(codes.dim())]
        return self.scale.float().reshape(shape), self.zero_point.float().reshape(shape)


class QuantizedTensor(Tensor):
    """Codes and what they mean."""

    __torch_function__ = _C._disabled_torch_function_impl
    _codes: Tensor
    _quantizer: _Quantizer

    # What PyTorch calls these tensors.
    dtype: Any = property(lambda self: _NAMES[self._codes.dtype])
    is_quantized: Any = property(lambda self: True)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        of_library = getattr(func, "function", None)
        function = None if of_library is None else of_library("QuantizedCPU")
        if function is not None:
            return function(*args, **(kwargs or {}))
        rule = _rules.RULES.get(func.overloadpacket.__name__)
        if rule is None:
            raise _refusal(func, "QuantizedCPU")
        return rule(func, *args, **(kwargs or {}))

    def __repr__(self, *, tensor_contents=None):
        from rushlight import _tensor_str

        about = self._quantizer
        suffixes = [
            f"size={tuple(self.shape)}",
            f"dtype={self.dtype}",
            f"quantization_scheme={about.scheme}",
            f"scale={about.scale}",
            f"zero_point={about.zero_point}",
        ]
        if about.axis is not None:
            suffixes.append(f"axis={about.axis}")
        prefix = "tensor("
        numbers = tensor_contents or _tensor_str._contents(self.dequantize(), len(prefix))
        return _tensor_str._add_suffixes(prefix + numbers, suffixes, len(prefix))

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = _wrap_codes(self._codes.clone(), self._quantizer)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        codes, about = self._codes, self._quantizer
        storage = TypedStorage._from_untyped(codes.untyped_storage(), self.dtype)
        place = (codes.storage_offset(), tuple(codes.size()), codes.stride())
        means = about if about.axis is not None else about[:-1]
        return rushlight._utils._rebuild_qtensor, (
            storage,
            *place,
            tuple(means),
            False,
            OrderedDict(),
        )

    def type(self, dtype=None, non_blocking=False, **kwargs):
        if dtype is None:
            return f"torch.quantized.{_KINDS[self.dtype]}Tensor"
        return super().type(dtype, non_blocking, **kwargs)

    def untyped_storage(self):
        return self._codes.untyped_storage()

    def data_ptr(self):
        return self._codes.data_ptr()

    def tolist(self) -> NoReturn:
        raise RuntimeError("tolist(): a quantized tensor holds codes: call dequantize() first")

    def numpy(self, *, force=False):
        raise TypeError(f"Got unsupported ScalarType {_KINDS[self.dtype]}")


def _wrap_codes(codes: Tensor, quantizer: _Quantizer) -> QuantizedTensor:
    made: Any = Tensor._make_wrapper_subclass(
        QuantizedTensor,
        codes.shape,
        strides=codes.stride(),
        storage_offset=codes.storage_offset(),
        dtype=codes.dtype,
        device=codes.device,
    )
    made._codes, made._quantizer = codes, quantizer
    return made


def of_codes(
    codes: Tensor, scheme: Any, scale: Any, zero_point: Any, axis: Any = None
) -> QuantizedTensor:
    """The tensor of which a file tells codes and what they mean: nothing of it is trusted."""
    if scheme is per_tensor_affine and axis is None:
        fits = type(scale) is float and type(zero_point) is int
    else:
        fits = scheme in (per_channel_affine, per_channel_affine_float_qparams)
        fits = fits and type(axis) is int and 0 <= axis < codes.dim()
        fits = fits and all(
            type(t) is Tensor and t.shape == codes.shape[axis : axis + 1]
            for t in (scale, zero_point)
        )
    if not fits:
        raise TypeError(f"scale and zero point do not fit a quantized tensor of {scheme!r}")
    return _wrap_codes(codes, _Quantizer(scheme, scale, zero_point, axis))


def _refusal(func: Any, backend: str) -> NotImplementedError:
    return NotImplementedError(
        f"Could not run '{func}' with arguments from the '{backend}' backend: "
        "this op is not there for quantized tensors"
    )


def _expect_quantized(input: Any, name: str) -> QuantizedTensor:
    if not isinstance(input, QuantizedTensor):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: "
            "the tensor is not quantized"
        )
    return input


# ---- making ----


def _limits(dtype: rushlight.dtype) -> tuple[int, int]:
    if dtype not in CODES:
        raise RuntimeError(f"ScalarType {dtype} is not supported in new_qtensor.")
    info = rushlight.iinfo(CODES[dtype])
    return info.min, info.max


def _check_float(input: Tensor) -> None:
    if isinstance(input, QuantizedTensor):
        raise _refusal("aten::quantize_per_tensor", "QuantizedCPU")
    if input.dtype != rushlight.float32:
        kind = input.dtype._kind
        raise RuntimeError(f"Quantize only works on Float Tensor, got {kind}")


def _codes_of(input: Tensor, scale, zero_point, dtype) -> Tensor:
    """The nearest codes; too large numbers and NaN have the last one."""
    first, last = _limits(dtype)
    places = input * (1 / scale) + zero_point
    wide = rushlight.float64 if dtype == rushlight.qint32 else rushlight.float32
    places = places.to(wide).round_().nan_to_num_(last, last, first)
    return places.clamp_(first, last).to(CODES[dtype])


@overload
def quantize_per_tensor(input: Tensor, scale: Any, zero_point: Any, dtype: _dtype) -> Tensor: ...


@overload
def quantize_per_tensor(
    input: Sequence[Tensor], scale: Any, zero_point: Any, dtype: _dtype
) -> tuple[Tensor, ...]: ...


def quantize_per_tensor(
    input: Tensor | Sequence[Tensor], scale: Any, zero_point: Any, dtype: _dtype
) -> Tensor | tuple[Tensor, ...]:
    """Codes under one scale and one zero point.

    Args:
        input: a float32 tensor, or a list of tensors, each with an element of the next two.
        scale: what a step of the codes is; a number or a tensor of one.
        zero_point: the code of 0.
        dtype: `qint8`, `quint8` or `qint32`.

    Example:
        >>> x = torch.quantize_per_tensor(torch.tensor([0.0, 0.5]), 0.1, 10, torch.quint8)
        >>> x.int_repr()
        tensor([10, 15], dtype=torch.uint8)
    """
    if not isinstance(input, Tensor):
        return tuple(
            quantize_per_tensor(t, s, z, dtype)
            for t, s, z in zip(input, scale, zero_point, strict=True)
        )
    _check_float(input)
    scale, zero_point = float(scale), int(zero_point)
    first, last = _limits(dtype)
    if not first <= zero_point <= last:
        side = "below lower" if zero_point < first else "above upper"
        raise RuntimeError(
            f"quantize_tensor_per_tensor_affine zero_point {zero_point} is {side} bound."
        )
    about = _Quantizer(per_tensor_affine, scale, zero_point)
    if input.device.type == "cpu" and dtype != rushlight.qint32:
        codes = _C.ops._codes_of(input.detach(), scale, zero_point, CODES[dtype])
    else:
        step, zero = about.along(input)
        codes = _codes_of(input.detach(), step, zero, dtype)
    return _wrap_codes(codes, about)


def quantize_per_tensor_dynamic(input: Tensor, dtype: _dtype, reduce_range: Any) -> Tensor:
    """Codes under the scale that the numbers of the tensor ask for.

    Args:
        input: a float32 tensor.
        dtype: `qint8` or `quint8`.
        reduce_range: leave one bit of the codes unused.

    Example:
        >>> x = torch.quantize_per_tensor_dynamic(torch.tensor([0.0, 2.55]), torch.quint8, False)
        >>> x.int_repr()
        tensor([  0, 255], dtype=torch.uint8)
    """
    _check_float(input)
    first, last = _limits(dtype)
    low, high = input.aminmax() if input.numel() else (input.new_zeros(()),) * 2
    ends = float(low), float(high)
    scale, zero_point = choose_qparams(*ends, first, last, reduce_range=reduce_range)
    return quantize_per_tensor(input, scale, zero_point, dtype)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: Any, dtype: _dtype
) -> Tensor:
    """Codes with a scale and a zero point for each index of a dimension.

    Args:
        input: a float32 tensor.
        scales: steps of the codes, one for each index.
        zero_points: the codes of 0; floats are kept as such.
        axis: the dimension.
        dtype: `qint8`, `quint8` or `qint32`.

    Example:
        >>> rows, scales, zeros = torch.ones(2, 1), torch.tensor([0.1, 0.5]), torch.tensor([0, 0])
        >>> torch.quantize_per_channel(rows, scales, zeros, 0, torch.qint8).int_repr()
        tensor([[10],
                [ 2]], dtype=torch.int8)
    """
    _check_float(input)
    _limits(dtype)
    axis = axis + input.dim() if axis < 0 else axis
    codes = input.detach()
    about = _channels(codes, scales, zero_points, axis)
    step, zero = about.along(codes)
    return _wrap_codes(_codes_of(codes, step, zero, dtype), about)


def _channels(codes: Tensor, scales: Tensor, zero_points: Tensor, axis: int) -> _Quantizer:
    if not 0 <= axis < codes.dim():
        raise RuntimeError("Channel axis out of range in per channel affine quantization.")
    if not scales.numel() == zero_points.numel() == codes.shape[axis]:
        raise RuntimeError(
            f"length of scales must equal to channel, expected {codes.shape[axis]} got, "
            f"{scales.numel()}"
        )
    if zero_points.is_floating_point():
        kind, wide, whole = per_channel_affine_float_qparams, rushlight.float32, rushlight.float32
    else:
        kind, wide, whole = per_channel_affine, rushlight.float64, rushlight.int64
    return _Quantizer(kind, scales.detach().to(wide), zero_points.detach().to(whole), axis)


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """The tensor of these codes."""
    if input.dtype not in _NAMES:
        raise RuntimeError(f"codes are int8, uint8 or int32, not {input.dtype}")
    return _wrap_codes(input.clone(), _Quantizer(per_tensor_affine, float(scale), int(zero_point)))


def _make_per_channel_quantized_tensor(input, scale, zero_point, axis):
    """The tensor of these codes, with a scale and a zero point for each index of a dimension."""
    if input.dtype not in _NAMES:
        raise RuntimeError(f"codes are int8, uint8 or int32, not {input.dtype}")
    return _wrap_codes(input.clone(), _channels(input, scale, zero_point, axis))


def _empty_affine_quantized(size, *, scale=1, zero_point=0, dtype: Any = None, device=None):
    """A tensor of any codes."""
    _limits(dtype)
    codes = rushlight.empty(size, dtype=CODES[dtype], device=device)
    return _wrap_codes(codes, _Quantizer(per_tensor_affine, float(scale), int(zero_point)))


# ---- reading ----


@_C._Offered
def dequantize(input):
    """The numbers of a quantised tensor, or of a list of them; a plain one in float32.

    Args:
        input: the tensor, or a list of them.

    Example:
        >>> torch.dequantize(torch.quantize_per_tensor(torch.tensor([0.5]), 0.25, 0, torch.qint8))
        tensor([0.5000])
    """
    if isinstance(input, list | tuple):
        return tuple(dequantize(t) for t in input)
    if not isinstance(input, QuantizedTensor):
        return input.to(rushlight.float32)
    about, codes = input._quantizer, input._codes
    if about.axis is None and codes.device.type == "cpu" and input.dtype != rushlight.qint32:
        return _C.ops._numbers_of_codes(codes, about.scale, about.zero_point)
    step, zero = about.along(codes)
    return (codes.float() - zero) * step


@_C._Offered
def int_repr(input: Tensor) -> Tensor:
    """The codes.

    Args:
        input: a quantised tensor.

    Example:
        >>> torch.int_repr(torch.quantize_per_tensor(torch.tensor([0.5]), 0.25, 0, torch.qint8))
        tensor([2], dtype=torch.int8)
    """
    return _expect_quantized(input, "int_repr")._codes.clone()


def _expect_per_tensor(input: Tensor, name: str) -> _Quantizer:
    about = _expect_quantized(input, name)._quantizer
    if about.axis is not None:
        raise RuntimeError(
            "Expected quantizer->qscheme() == kPerTensorAffine to be true: it is by channels"
        )
    return about


def _by_channels(input: Tensor, name: str) -> _Quantizer:
    about = _expect_quantized(input, name)._quantizer
    if about.axis is None:
        raise RuntimeError(
            "Expected quantizer->qscheme() == kPerChannelAffine to be true: it is one for all"
        )
    return about


@_C._Offered
def q_scale(input: Tensor) -> float:
    """The one scale.

    Args:
        input: a quantised tensor.

    Example:
        >>> torch.q_scale(torch.quantize_per_tensor(torch.tensor([0.5]), 0.25, 0, torch.qint8))
        0.25
    """
    return _expect_per_tensor(input, "q_scale").scale


@_C._Offered
def q_zero_point(input: Tensor) -> int:
    """The one zero point.

    Args:
        input: a quantised tensor.

    Example:
        >>> torch.q_zero_point(torch.quantize_per_tensor(torch.tensor([0.5]), 0.25, 3, torch.qint8))
        3
    """
    return _expect_per_tensor(input, "q_zero_point").zero_point


@_C._Offered
def q_per_channel_scales(input: Tensor) -> Tensor:
    """The scale of each channel.

    For an example see `quantize_per_channel`.

    Args:
        input: a quantised tensor.
    """
    return _by_channels(input, "q_per_channel_scales").scale.clone()


@_C._Offered
def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """The zero point of each channel.

    For an example see `quantize_per_channel`.

    Args:
        input: a quantised tensor.
    """
    return _by_channels(input, "q_per_channel_zero_points").zero_point.clone()


@_C._Offered
def q_per_channel_axis(input):
    """The dimension of the channels.

    For an example see `quantize_per_channel`.

    Args:
        input: a quantised tensor.
    """
    return _by_channels(input, "q_per_channel_axis").axis


def scheme_of(input: Tensor) -> rushlight.qscheme:
    """`per_tensor_affine`, `per_channel_affine` or `per_channel_affine_float_qparams`."""
    return _expect_quantized(input, "qscheme")._quantizer.scheme


def choose_qparams_optimized(
    input: Tensor, numel: int, n_bins: int, ratio: float, bit_width: int
) -> tuple[Tensor, Tensor]:
    """The smaller range of numbers whose codes lose the least, by trying narrower ones.

    Args:
        input: floating-point numbers.
        numel: how many of them.
        n_bins: steps into which their range is cut.
        ratio: the part of the range that may be left out.
        bit_width: bits of a code.

    Example:
        >>> numbers = torch.tensor([0.0, 1.0, 2.0, 10.0])
        >>> torch.choose_qparams_optimized(numbers, numbers.numel(), 200, 0.16, 8)
        (tensor([10.]), tensor([0.]))
    """
    numbers = input.flatten()[:numel]
    low, high = float(numbers.min()), float(numbers.max())
    step = (high - low) / n_bins
    best = (low, high, _loss(numbers, low, high, bit_width))
    now = (low, high)
    least = n_bins * (1.0 - ratio) * step
    while now[1] - now[0] > least and step > 0:
        losses = [
            (a, b, _loss(numbers, a, b, bit_width))
            for a, b in ((now[0] + step, now[1]), (now[0], now[1] - step))
        ]
        chosen = losses[0] if losses[0][2] < losses[1][2] else losses[1]
        if chosen[2] < best[2]:
            best = chosen
        now = chosen[:2]
    return rushlight.tensor([best[1]]), rushlight.tensor([best[0]])


def _loss(numbers: Tensor, low: float, high: float, bits: int) -> float:
    codes = 2**bits - 1
    step = (high - low) / codes or 1.0
    kept = ((numbers - low) / step).round().clamp(0, codes) * step + low
    return float((kept - numbers).norm())
