"""Observers: modules that see the tensors that pass through and choose scales and zero points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight.ao.quantization._histogram import HistogramObserver
from rushlight.ao.quantization._observer_bases import (
    _EPS,
    _PER_CHANNEL,
    ObserverBase,
    UniformQuantizationObserverBase,
    _BoundsObserver,
    _PartialWrapper,  # noqa: F401  # PyTorch has it here
    _with_args,  # noqa: F401
    _with_callable_args,  # noqa: F401
)

if TYPE_CHECKING:
    from rushlight.nn import Module


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


# ---- what was smallest and largest ----


class MinMaxObserver(_BoundsObserver):
    """Observes the smallest and the largest number.

    Example:
        >>> observer = torch.ao.quantization.MinMaxObserver()
        >>> _ = observer(torch.tensor([0.0, 2.55]))
        >>> scale, zero_point = observer.calculate_qparams()
        >>> scale, zero_point.item()
        (tensor([0.0100]), 0)
    """

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

    Example:
        >>> observer = torch.ao.quantization.MovingAverageMinMaxObserver(averaging_constant=0.5)
        >>> for largest in (2.0, 4.0):
        ...     _ = observer(torch.tensor([0.0, largest]))
        >>> observer.max_val
        tensor(3.)
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: rushlight.dtype = rushlight.quint8,
        qscheme: Any = rushlight.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
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

    Example:
        >>> observer = torch.ao.quantization.PerChannelMinMaxObserver()
        >>> _ = observer(torch.tensor([[0.0, 2.55], [0.0, 5.1]]))
        >>> observer.calculate_qparams()[0]  # scales
        tensor([0.0100, 0.0200])
    """

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: rushlight.dtype = rushlight.quint8,
        qscheme: Any = rushlight.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float | None = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
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
        ch_axis: the dimension of the channels.

    For an example see `ao.quantization.MovingAverageMinMaxObserver`.
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: rushlight.dtype = rushlight.quint8,
        qscheme: Any = rushlight.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
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

    Example:
        >>> observer = torch.ao.quantization.FixedQParamsObserver(scale=0.1, zero_point=10)
        >>> observer.calculate_qparams()
        (tensor([0.1000]), tensor([10], dtype=torch.int32))
    """

    scale: Any
    zero_point: Any

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: rushlight.dtype = rushlight.quint8,
        qscheme: Any = rushlight.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: Any,
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
        """The scale and the zero point for what has been observed."""
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

    Example:
        >>> torch.ao.quantization.PlaceholderObserver(dtype=torch.qint8, is_dynamic=True).dtype
        torch.qint8
    """

    def __init__(
        self,
        dtype: rushlight.dtype = rushlight.float32,
        custom_op_name: str = "",
        compute_dtype: rushlight.dtype | None = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        eps: float | None = None,
        is_dynamic: bool = False,
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

    Example:
        >>> observer = torch.ao.quantization.RecordingObserver()
        >>> _ = observer(torch.ones(2))
        >>> observer.get_tensor_value()
        [tensor([1., 1.])]
    """

    def __init__(self, dtype: rushlight.dtype = rushlight.quint8) -> None:
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

    Example:
        >>> observer = torch.ao.quantization.NoopObserver()
        >>> observer(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(
        self, dtype: rushlight.dtype = rushlight.float16, custom_op_name: str = ""
    ) -> None:
        super().__init__(dtype, is_dynamic=False)
        self.custom_op = custom_op_name


class ReuseInputObserver(_WithoutScale):
    """Observes nothing, because the result has the codes of its input.

    Example:
        >>> observer = torch.ao.quantization.ReuseInputObserver()
        >>> observer(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self) -> None:
        super().__init__(rushlight.quint8, is_dynamic=False)


# ---- files, and the usual ones ----


def get_observer_state_dict(mod: Module) -> dict[str, Any]:
    """The states of a module's observers, by name.

    Args:
        mod: a module that was prepared.

    Example:
        >>> from rushlight.ao import quantization
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 2)).eval()
        >>> net.qconfig = quantization.get_default_qconfig()
        >>> prepared = quantization.prepare(net)
        >>> state = quantization.get_observer_state_dict(prepared)
        >>> quantization.load_observer_state_dict(prepared, state)
    """
    found = {k: v for k, v in mod.state_dict().items() if "activation_post_process" in k}
    return type(mod.state_dict())(found)


def load_observer_state_dict(mod: Module, obs_dict: Mapping[str, rushlight.Tensor]):
    """Load the states of a module's observers.

    Args:
        mod: a module that was prepared.
        obs_dict: what `get_observer_state_dict` gave.

    For an example see `ao.quantization.get_observer_state_dict`.
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
