"""The bases of observers, and constructors with some of their arguments given.

Public in `observer`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import rushlight
from rushlight import nn
from rushlight._warnings import warn

_EPS = rushlight.finfo(rushlight.float32).eps


_PER_CHANNEL = (
    rushlight.per_channel_affine,
    rushlight.per_channel_symmetric,
    rushlight.per_channel_affine_float_qparams,
)


_SYMMETRIC = (rushlight.per_tensor_symmetric, rushlight.per_channel_symmetric)


_RANGES = {
    rushlight.qint8: (-128, 127),
    rushlight.int8: (-128, 127),
    rushlight.quint8: (0, 255),
    rushlight.uint8: (0, 255),
    rushlight.qint32: (-(2**31), 2**31 - 1),
    rushlight.int32: (-(2**31), 2**31 - 1),
    rushlight.int16: (-(2**15), 2**15 - 1),
    rushlight.uint16: (0, 2**16 - 1),
    rushlight.quint4x2: (0, 15),
}


class _PartialWrapper:
    """A constructor with some of its arguments given; `with_args` gives more."""

    __module__ = "rushlight.ao.quantization.observer"

    def __init__(self, p) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args, **keywords):
        for name, make in self.callable_args.items():
            keywords.setdefault(name, make())
        return self.p(*args, **keywords)

    def __repr__(self) -> str:
        return repr(self.p) + (repr(self.callable_args) if self.callable_args else "")

    def with_args(self, **kwargs):
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs):
        made = _PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self, **kwargs):
    """A constructor with these arguments, for a qconfig.

    Args:
        cls_or_self: a class, or what this gave before.
        kwargs: arguments of the constructor.
    """
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self, **kwargs):
    """The same with arguments that are called for each module that is made."""
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


class ObserverBase(nn.Module):
    """A module that sees tensors and computes how to quantise them.

    Args:
        dtype: the dtype of the codes.
        is_dynamic: the scale is that of each tensor, not of what came before.

    For an example see `ao.quantization.MinMaxObserver`.
    """

    __module__ = "rushlight.ao.quantization.observer"

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)

    def __init__(self, dtype: rushlight.dtype, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    def forward(self, x):
        raise NotImplementedError("forward() of an observer sees a tensor and gives it back")

    def calculate_qparams(self, **kwargs):
        """The scale and the zero point for what has been observed."""
        raise NotImplementedError("calculate_qparams() of an observer gives scale and zero point")


class UniformQuantizationObserverBase(ObserverBase):
    """Chooses equidistant codes from the smallest and the largest number.

    Args:
        dtype: the dtype of the codes.
        qscheme: one scale or one for each channel, with 0 at the middle code or not.
        reduce_range: leave one bit of the codes unused.
        quant_min: the first code, with `quant_max`, where it is not the dtype's.
        quant_max: the last code.
        factory_kwargs: `dtype` and `device` of buffers.
        eps: the smallest scale.
        is_dynamic: the scale is that of each tensor, not of what came before.

    For an example see `ao.quantization.MinMaxObserver`.
    """

    __module__ = "rushlight.ao.quantization.observer"

    _version = 3
    eps: Any
    quant_min: Any
    quant_max: Any

    def __init__(
        self,
        dtype: rushlight.dtype = rushlight.quint8,
        qscheme: Any = rushlight.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float | None = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype, is_dynamic, **kwargs)
        known = (rushlight.per_tensor_affine, rushlight.per_tensor_symmetric, *_PER_CHANNEL)
        if qscheme not in known:
            raise AssertionError(f"observers know no scheme {qscheme}")
        if dtype not in _RANGES:
            raise AssertionError(f"observers know no codes of {dtype}")
        self.qscheme = qscheme
        self.reduce_range = reduce_range
        self.register_buffer("eps", rushlight.tensor([eps], **_factory(factory_kwargs)))
        self.has_customized_qrange = False
        if quant_min is not None and quant_max is not None:
            self.has_customized_qrange = True
            if not quant_min < quant_max:
                raise AssertionError("qmin must be less than qmax: the first and the last code")
            self.quant_min, self.quant_max = quant_min, quant_max
            if reduce_range:
                self.quant_min, self.quant_max = quant_min // 2, quant_max // 2
        else:
            low, high = _RANGES[dtype]
            halved = reduce_range and dtype not in (rushlight.qint32, rushlight.int32)
            self.quant_min, self.quant_max = (low // 2, high // 2) if halved else (low, high)

    def _calculate_qparams(self, min_val, max_val):
        """Scale and zero point for what lies between two numbers, or pairs of them."""
        if min_val.numel() == 0 or not rushlight.isfinite(min_val).all():
            warn("must run observer before calling calculate_qparams: nothing was seen")
            return min_val.new_ones(1), rushlight.zeros(1, dtype=rushlight.int64)
        if not (min_val <= max_val).all():
            raise AssertionError(f"min {min_val} should be less than max {max_val}")
        codes = float(self.quant_max - self.quant_min)
        low, high = min_val.clamp(max=0), max_val.clamp(min=0)
        zero = rushlight.zeros_like(low, dtype=rushlight.int64)
        if self.qscheme in _SYMMETRIC:
            scale = (rushlight.maximum(-low, high) / (codes / 2)).maximum(self.eps)
            if self.dtype in (rushlight.quint8, rushlight.uint8):
                middle = (self.quant_min + self.quant_max) // 2
                zero.fill_(middle if self.has_customized_qrange else 128)
            elif self.dtype == rushlight.uint16:
                zero.fill_(2**15)
        elif self.qscheme is rushlight.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / codes
            scale = rushlight.where(scale > self.eps, scale, rushlight.ones_like(scale))
            zero = -min_val / scale
        else:
            scale = ((high - low) / codes).maximum(self.eps)
            zero = self.quant_min - (low / scale).round().to(rushlight.int32)
            zero = zero.clamp(self.quant_min, self.quant_max)
        if zero.dim() == 0:
            zero = zero.reshape(1)
        return scale.reshape(1) if scale.dim() == 0 else scale, zero

    def calculate_qparams(self):
        """The scale and zero point for the tensors that were observed."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def reset_min_max_vals(self):
        """Forget what has been observed."""
        raise NotImplementedError("this observer has nothing to forget")


def _factory(kwargs):
    made = {**(kwargs or {})}
    if unknown := made.keys() - {"dtype", "device"}:
        raise TypeError(f"factory_kwargs are dtype and device, not {sorted(unknown)}")
    return made


class _BoundsObserver(UniformQuantizationObserverBase):
    """What has the smallest and the largest number as buffers."""

    min_val: Any
    max_val: Any

    def _begin_with(self, low: Any, high: Any, factory_kwargs: Any) -> None:
        made = _factory(factory_kwargs)
        self.register_buffer("min_val", rushlight.tensor(low, **made))
        self.register_buffer("max_val", rushlight.tensor(high, **made))

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"
