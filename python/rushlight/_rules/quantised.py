"""The rules of quantised tensors: what moves elements or keeps their order acts on the codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor
from rushlight._quantized import (
    QuantizedTensor,
    _codes_of,
    _expect_per_tensor,
    _Quantizer,
    _wrap_codes,
    per_tensor_affine,
    quantize_per_tensor,
)
from rushlight._rules import Rules

if TYPE_CHECKING:
    from rushlight._ops import OpOverload

__all__ = ["RULES"]


def _moves(func, self, *args, **kwargs):
    """Elements that change their place: the codes do."""
    about = self._quantizer
    if about.axis is not None:
        raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
    made = func(self._codes, *args, **kwargs)
    if isinstance(made, list | tuple):
        return type(made)(_wrap_codes(part, about) for part in made)
    return _wrap_codes(made, about)


def _stays(func, self, *args, **kwargs):
    """The same elements."""
    return _wrap_codes(func(self._codes, *args, **kwargs), self._quantizer)


def _select(func: OpOverload, self: Tensor, dim: int, index: int) -> Tensor:
    about = self._quantizer
    dim = dim + self.dim() if dim < 0 else dim
    if about.axis is None:
        return _wrap_codes(func(self._codes, dim, index), about)
    if dim != about.axis:
        axis = about.axis - (dim < about.axis)
        return _wrap_codes(func(self._codes, dim, index), about._replace(axis=axis))
    one = _Quantizer(per_tensor_affine, float(about.scale[index]), int(about.zero_point[index]))
    return _wrap_codes(func(self._codes, dim, index), one)


def _empty_like(func, self, **kwargs):
    codes = rushlight.empty_like(self._codes, memory_format=kwargs.get("memory_format"))
    return _wrap_codes(codes, self._quantizer)


def _relu(func: OpOverload, self: Tensor) -> Tensor:
    about = _expect_per_tensor(self, "relu")
    return _wrap_codes(rushlight.clamp_min(self._codes, about.zero_point), about)


def _call_on_codes(func, self, *args, **kwargs):
    """Functions that keep the order of numbers, which is that of the codes under one scale."""
    about = _expect_per_tensor(self, func.overloadpacket.__name__)
    wide = self._codes.float() if self._codes.dtype != rushlight.int32 else self._codes.double()
    made = func(wide, *args, **kwargs)
    if isinstance(made, Tensor):
        return _wrap_codes(made.to(self._codes.dtype), about)
    return (_wrap_codes(made[0].to(self._codes.dtype), about), *made[1:])


def _average(func, self, *args, **kwargs):
    """Means of codes, rounded to the nearest code."""
    about = _expect_per_tensor(self, func.overloadpacket.__name__)
    means = func(self._codes.double() - about.zero_point, *args, **kwargs)
    return _wrap_codes((means.round_() + about.zero_point).to(self._codes.dtype), about)


def _call_in_float32(func, self, *args, **kwargs):
    """Computed in float32 and rounded to the codes of the input."""
    about = _expect_per_tensor(self, func.overloadpacket.__name__)
    made = func(self.dequantize(), *args, **kwargs)
    return quantize_per_tensor(made, about.scale, about.zero_point, self.dtype)


def _into(scale: float, zero_point: int) -> Callable[..., Any]:
    """Computed in float32 and rounded to codes for a range that the function has."""

    def rule(func, self, *args, **kwargs):
        made = func(self.dequantize(), *args, **kwargs)
        return quantize_per_tensor(made, scale, zero_point, self.dtype)

    return rule


def _copy_(func, self, source, non_blocking=False):
    about = self._quantizer
    if isinstance(source, QuantizedTensor):
        self._codes.copy_(source._codes)
        self._quantizer = source._quantizer
        return self
    step, zero = about.along(self._codes)
    self._codes.copy_(_codes_of(source.float(), step, zero, self.dtype))
    return self


def _fill_(func, self, value):
    return _copy_(func, self, rushlight.full(self.shape, float(value)))


def _cat(func: OpOverload, tensors: list[Tensor], dim: int = 0) -> Tensor:
    about, kind = _expect_per_tensor(tensors[0], "cat"), tensors[0].dtype
    if all(t._quantizer == about and t.dtype == kind for t in tensors):
        return _wrap_codes(func([t._codes for t in tensors], dim), about)
    made = func([t.dequantize() for t in tensors], dim)
    return quantize_per_tensor(made, about.scale, about.zero_point, kind)


def _compare(func: OpOverload, self: Tensor, other: Tensor) -> Tensor:
    return func(*(t.dequantize() if isinstance(t, QuantizedTensor) else t for t in (self, other)))


def _equal(func, self, other):
    if not (isinstance(self, QuantizedTensor) and isinstance(other, QuantizedTensor)):
        return False
    mine, theirs = self._quantizer, other._quantizer
    if mine.scheme is not theirs.scheme or mine.axis != theirs.axis or self.dtype != other.dtype:
        return False
    if mine.axis is None:
        same = mine == theirs
    else:
        same = rushlight.equal(mine.scale, theirs.scale)
        same = same and rushlight.equal(mine.zero_point, theirs.zero_point)
    return same and rushlight.equal(self._codes, other._codes)


def _number(func, self):
    return float(self.dequantize())


def _to_copy(func, self, *, dtype=None, device=None, memory_format=None, **kwargs):
    if dtype is not None:
        raise RuntimeError(
            "Creation of quantized tensor requires quantized dtype like torch.quint8"
        )
    return _wrap_codes(
        self._codes.to(device, copy=True, memory_format=memory_format), self._quantizer
    )


_SAME = "alias detach clone contiguous lift_fresh"
_MOVED = (
    "view _unsafe_view reshape _reshape_alias permute transpose t as_strided unsqueeze "
    "squeeze expand slice unbind split split_with_sizes chunk narrow flip index_select "
    "index unfold movedim diagonal flatten unflatten"
)
_ORDERED = (
    "_max_pool _max_pool_values _adaptive_max_pool max min amax amin sort topk max_pool1d "
    "max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d"
)
_AVERAGED = (
    "_adaptive_avg_pool _avg_pool mean avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool3d"
)
_COMPUTED = (
    "_interpolate _clamp clamp hardtanh leaky_relu "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d "
    "hardswish elu threshold constant_pad_nd pad"
)
RULES = Rules(
    {
        **dict.fromkeys(_SAME.split(), _stays),
        **dict.fromkeys(_MOVED.split(), _moves),
        **dict.fromkeys(_ORDERED.split(), _call_on_codes),
        **dict.fromkeys(_AVERAGED.split(), _average),
        **dict.fromkeys(_COMPUTED.split(), _call_in_float32),
        **dict.fromkeys(["eq", "ne", "lt", "le", "gt", "ge"], _compare),
        "sigmoid": _into(1 / 256, 0),
        "hardsigmoid": _into(1 / 256, 0),
        "tanh": _into(2 / 256, 128),
        "select": _select,
        "empty_like": _empty_like,
        "relu": _relu,
        "copy_": _copy_,
        "fill_": _fill_,
        "cat": _cat,
        "equal": _equal,
        "item": _number,
        "_local_scalar_dense": _number,
        "_to_copy": _to_copy,
    }
)
