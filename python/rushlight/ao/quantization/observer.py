"""Observers: modules that see the tensors that pass through and choose scales and zero points."""

from __future__ import annotations

from functools import partial
from typing import Any

import rushlight
from rushlight import nn
from rushlight._warnings import warn

__all__ = [
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]

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


# ---- constructors with arguments ----


class _PartialWrapper:
    """A constructor with some of its arguments given; `with_args` gives more."""

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


# ---- the bases ----


class ObserverBase(nn.Module):
    """A module that sees tensors and computes how to quantise them.

    Args:
        dtype: the dtype of the codes.
        is_dynamic: the scale is that of each tensor, not of what came before.
    """

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)

    def __init__(self, dtype, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    def forward(self, x):
        raise NotImplementedError("forward() of an observer sees a tensor and gives it back")

    def calculate_qparams(self, **kwargs):
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
        is_dynamic: as above.
    """

    _version = 3
    eps: Any
    quant_min: Any
    quant_max: Any

    def __init__(
        self,
        dtype=rushlight.quint8,
        qscheme=rushlight.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
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
        raise NotImplementedError("this observer has nothing to forget")


def _factory(kwargs):
    made = {**(kwargs or {})}
    if unknown := made.keys() - {"dtype", "device"}:
        raise TypeError(f"factory_kwargs are dtype and device, not {sorted(unknown)}")
    return made


# ---- what was smallest and largest ----


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


class MinMaxObserver(_BoundsObserver):
    """Observes the smallest and the largest number. It has the arguments of its base class."""

    def __init__(
        self,
        dtype=rushlight.quint8,
        qscheme=rushlight.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if qscheme in _PER_CHANNEL:
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_tensor_symmetric and "
                "torch.per_tensor_affine."
            )
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            factory_kwargs,
            eps,
            is_dynamic,
            **kwargs,
        )
        self._begin_with(rushlight.inf, -rushlight.inf, factory_kwargs)

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        low, high = x.aminmax()
        self.min_val.copy_(rushlight.minimum(low, self.min_val))
        self.max_val.copy_(rushlight.maximum(high, self.max_val))
        return x_orig

    def reset_min_max_vals(self):
        """Forget all observations."""
        self.min_val.fill_(rushlight.inf)
        self.max_val.fill_(-rushlight.inf)


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Observes moving averages of the smallest and the largest number of each tensor.

    Args:
        averaging_constant: the part of a new tensor in the averages.
        dtype: the dtype of the codes; the rest as in `MinMaxObserver`.
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype=rushlight.quint8,
        qscheme=rushlight.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        self.averaging_constant = averaging_constant
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                "averaging constant other than 1"
            )

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        low, high = x_orig.detach().to(self.min_val.dtype).aminmax()
        _average(self, low, high)
        return x_orig


def _average(observer, low, high):
    """What was seen before moves towards what is seen now; at first it is that."""
    for buffer, now in ((observer.min_val, low), (observer.max_val, high)):
        if buffer.numel() == 0 or rushlight.isinf(buffer).all():
            buffer.resize_(now.shape).copy_(now)
        else:
            buffer.copy_(buffer + observer.averaging_constant * (now - buffer))


class PerChannelMinMaxObserver(_BoundsObserver):
    """Observes the smallest and the largest number of each channel.

    Args:
        ch_axis: the dimension of the channels.
        dtype: the dtype of the codes; the rest as in the base.
    """

    def __init__(
        self,
        ch_axis: int = 0,
        dtype=rushlight.quint8,
        qscheme=rushlight.per_channel_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if qscheme not in _PER_CHANNEL:
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support torch.per_channel_symmetric, "
                "torch.per_channel_affine and torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError(
                "PerChannelMinMaxObserver doesn't support dynamic quantization"
            )
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            factory_kwargs,
            eps,
            is_dynamic,
            **kwargs,
        )
        self.ch_axis = ch_axis
        self._begin_with([], [], factory_kwargs)

    def _channels(self, x_orig):
        x = x_orig.detach().movedim(self.ch_axis, 0).to(self.min_val.dtype)
        return x.reshape(x.shape[0], -1).aminmax(dim=1)

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        low, high = self._channels(x_orig)
        if self.min_val.numel() != 0:
            low, high = rushlight.minimum(low, self.min_val), rushlight.maximum(high, self.max_val)
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)
        return x_orig

    def reset_min_max_vals(self):
        """Forget all observations."""
        self.min_val.resize_(0)
        self.max_val.resize_(0)

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        # Channels are not known before the first tensor: buffers get the sizes of the file's.
        for name in ("min_val", "max_val"):
            if (value := state_dict.get(prefix + name)) is not None:
                getattr(self, name).resize_(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Observes moving averages of the smallest and the largest number of each channel.

    Args:
        averaging_constant: the part of a new tensor in the averages.
        ch_axis: the dimension of the channels; the rest as above.
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype=rushlight.quint8,
        qscheme=rushlight.per_channel_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        super().__init__(
            ch_axis,
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        low, high = self._channels(x_orig)
        _average(self, low, high)
        return x_orig


# ---- histograms ----


class HistogramObserver(_BoundsObserver):
    """Observes a histogram, and clips it at both ends so that the quantisation error is least.

    Args:
        bins: the bins of the histogram.
        dtype: the dtype of the codes; the rest as in the base.
    """

    histogram: Any

    def __init__(
        self,
        bins: int = 2048,
        dtype=rushlight.quint8,
        qscheme=rushlight.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if qscheme in _PER_CHANNEL:
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric and "
                "torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            factory_kwargs,
            eps,
            is_dynamic,
            **kwargs,
        )
        self.bins = bins
        made = _factory(factory_kwargs)
        self.register_buffer("histogram", rushlight.zeros(bins, **made))
        self._begin_with(rushlight.inf, -rushlight.inf, factory_kwargs)
        low, high = _RANGES[dtype]
        self.dst_nbins = high - low + 1
        self.upsample_rate = 16

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        x = x[rushlight.isfinite(x)]
        if x.numel() == 0:
            return x_orig
        low, high = x.aminmax()
        first = bool(rushlight.isinf(self.min_val))
        if not first:
            low = rushlight.minimum(low, self.min_val)
            high = rushlight.maximum(high, self.max_val)
        counts = rushlight.histc(x, self.bins, min=float(low), max=float(high))
        if not first and self.min_val != self.max_val:
            counts = counts + self._rebin(low, high)
        self.histogram.detach_().resize_(counts.shape).copy_(counts)
        self.min_val.detach_().resize_(low.shape).copy_(low)
        self.max_val.detach_().resize_(high.shape).copy_(high)
        return x_orig

    def _rebin(self, low, high):
        """The histogram in bins between other ends: each bin in small parts, by their middles."""
        if low == self.min_val and high == self.max_val:
            return self.histogram
        parts = self.bins * self.upsample_rate
        counts = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        width = (self.max_val - self.min_val) / parts
        middles = rushlight.linspace(float(self.min_val), float(self.max_val), parts + 1)[:-1]
        middles = middles.to(width.device) + 0.5 * width
        ends = rushlight.linspace(float(low), float(high), self.bins + 1).to(width.device)
        places = rushlight.bucketize(middles, ends, right=True) - 1
        return rushlight.bincount(places.clamp(0, self.bins - 1), counts, self.bins).to(
            counts.dtype
        )

    def _loss(self, first: int, last: int) -> float:
        """The sum of squares that codes lose that cover the bins first … last.

        Numbers are taken to lie evenly in a bin, which may reach over several codes.
        """
        bin_width = (float(self.max_val) - float(self.min_val)) / self.bins
        width = bin_width * (last - first + 1) / self.dst_nbins
        if width == 0:
            return 0.0
        density = self.histogram / bin_width
        begin = (rushlight.arange(self.bins, device=density.device) - first) * bin_width
        end = begin + bin_width
        code = (begin / width).floor().clamp(0, self.dst_nbins - 1)
        last_code = (end / width).floor().clamp(0, self.dst_nbins - 1)
        half = width / 2

        def cube(a, b):
            return density * (b**3 - a**3) / 3

        left = cube(begin - (code + 0.5) * width, rushlight.full_like(begin, half))
        whole = (last_code - code - 1) * cube(
            rushlight.full_like(begin, -half), rushlight.full_like(begin, half)
        )
        right = cube(rushlight.full_like(begin, -half), end - (last_code * width + half))
        return float((left + whole + right).sum())

    def _non_linear_param_search(self):
        """The range of bins that loses the least: ends move inwards while it gets less."""
        if self.histogram.shape[0] != self.bins:
            raise AssertionError("bins mismatch")
        bin_width = (self.max_val - self.min_val) / self.bins
        sums = self.histogram.cumsum(0).tolist()
        total = float(self.histogram.sum())
        step, below, above = 1e-5, 0.0, 1.0
        first, last, least = 0, self.bins - 1, float("inf")
        while below < above:
            next_below, next_above = below + step, above - step
            left, right = first, last
            while left < last and sums[left] < next_below * total:
                left += 1
            while right > first and sums[right] > next_above * total:
                right -= 1
            if left - first > last - right:
                chosen, below = (left, last), next_below
            else:
                chosen, above = (first, right), next_above
            if chosen == (first, last):
                continue
            loss = self._loss(*chosen)
            if loss > least:
                break
            least = loss
            first, last = chosen
        return self.min_val + bin_width * first, self.min_val + bin_width * (last + 1)

    def calculate_qparams(self):
        if rushlight.isinf(self.min_val):
            return self._calculate_qparams(self.min_val, self.max_val)
        return self._calculate_qparams(*self._non_linear_param_search())


# ---- others ----


class FixedQParamsObserver(ObserverBase):
    """An observer with a fixed scale and zero point.

    Args:
        scale: what a step of the codes is.
        zero_point: the code of 0.
        dtype: the dtype of the codes.
        qscheme: the scheme that is reported.
        quant_min: the first code.
        quant_max: the last one.
        is_dynamic: refused.
    """

    scale: Any
    zero_point: Any

    def __init__(
        self,
        scale,
        zero_point,
        dtype=rushlight.quint8,
        qscheme=rushlight.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic=False,
        **kwargs,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype, is_dynamic, **kwargs)
        self.qscheme = qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        given = (("scale", scale, rushlight.float), ("zero_point", zero_point, rushlight.int))
        for name, value, kind in given:
            self.register_buffer(name, rushlight.tensor([value], dtype=kind))

    def forward(self, X):
        return X

    def calculate_qparams(self):
        return self.scale, self.zero_point


class _WithoutScale(ObserverBase):
    """Gives tensors on, and has neither scale nor zero point."""

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise Exception(f"calculate_qparams should not be called for {type(self).__name__}")


class PlaceholderObserver(_WithoutScale):
    """Observes nothing; it only says how to quantise.

    Args:
        dtype: the dtype of the codes.
        custom_op_name: a name that is stored with the observer.
        compute_dtype: an older way to say that the scale is that of each tensor.
        quant_min: the first code.
        quant_max: the last one.
        qscheme: one scale, or one for each channel.
        eps: the smallest scale.
        is_dynamic: the scale is that of each tensor.
    """

    def __init__(
        self,
        dtype=rushlight.float32,
        custom_op_name="",
        compute_dtype=None,
        quant_min=None,
        quant_max=None,
        qscheme=None,
        eps=None,
        is_dynamic=False,
    ) -> None:
        if compute_dtype:
            is_dynamic = True
        super().__init__(dtype, is_dynamic)
        self.qscheme = rushlight.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name

    def extra_repr(self):
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_WithoutScale):
    """Keeps the tensors that it observes.

    Args:
        dtype: the dtype of the codes that it reports.
    """

    def __init__(self, dtype=rushlight.quint8) -> None:
        super().__init__(dtype)
        self.tensor_val: list[Any] = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self):
        """The observed tensors."""
        return self.tensor_val


class NoopObserver(_WithoutScale):
    """Observes nothing, for tensors that stay floats.

    Args:
        dtype: the dtype of the numbers.
        custom_op_name: a name that is stored with the observer.
    """

    def __init__(self, dtype=rushlight.float16, custom_op_name="") -> None:
        super().__init__(dtype, is_dynamic=False)
        self.custom_op = custom_op_name


class ReuseInputObserver(_WithoutScale):
    """Observes nothing, because the result has the codes of its input."""

    def __init__(self) -> None:
        super().__init__(rushlight.quint8, is_dynamic=False)


# ---- files, and the usual ones ----


def get_observer_state_dict(mod):
    """The states of a module's observers, by name."""
    found = {k: v for k, v in mod.state_dict().items() if "activation_post_process" in k}
    return type(mod.state_dict())(found)


def load_observer_state_dict(mod, obs_dict):
    """Load the states of a module's observers.

    Args:
        mod: a module that was prepared.
        obs_dict: what `get_observer_state_dict` gave.
    """
    missing, unexpected = mod.load_state_dict(obs_dict, strict=False)
    missing = [name for name in missing if "activation_post_process" in name]
    if missing or unexpected:
        raise RuntimeError(
            f"Missing keys for observer {missing} or unexpected keys {unexpected} in state_dict"
        )


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(
    dtype=rushlight.qint8, qscheme=rushlight.per_tensor_symmetric
)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=rushlight.qint8,
    qscheme=rushlight.per_tensor_symmetric,
    quant_min=-127,
    quant_max=127,
    eps=2**-12,
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=rushlight.qint8, qscheme=rushlight.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=rushlight.qint8,
    qscheme=rushlight.per_channel_symmetric,
    quant_min=-127,
    quant_max=127,
    eps=2**-12,
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=rushlight.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=rushlight.quint8, qscheme=rushlight.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=rushlight.quint4x2, qscheme=rushlight.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=rushlight.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=rushlight.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
