"""Fake quantisation: modules for training that round floats to the values of codes."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import nn
from rushlight.ao.quantization.observer import (
    _PER_CHANNEL,
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]


class FakeQuantizeBase(nn.Module):
    """A module that rounds floats; rounding and observing can be turned on and off.

    For an example see `ao.quantization.FakeQuantize`.
    """

    fake_quant_enabled: Any
    observer_enabled: Any
    with_args = classmethod(_with_args)

    def __init__(self) -> None:
        super().__init__()
        # Buffers, so that copies of a network on several devices follow one switch.
        self.register_buffer("fake_quant_enabled", rushlight.tensor([1], dtype=rushlight.uint8))
        self.register_buffer("observer_enabled", rushlight.tensor([1], dtype=rushlight.uint8))

    def forward(self, x):
        raise NotImplementedError("forward() of a fake quantisation rounds a tensor")

    def calculate_qparams(self, **kwargs):
        """The scale and the zero point for what has been observed."""
        raise NotImplementedError("calculate_qparams() gives scale and zero point")

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Turn rounding on or off."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self):
        """Turn rounding off."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Turn observing on or off."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self):
        """Turn observing off: scale and zero point stay."""
        self.enable_observer(False)


class FakeQuantize(FakeQuantizeBase):
    """Rounds floats to codes whose scale an observer chooses.

    Args:
        observer: the class, or constructor, of the observer.
        quant_min: the first code, where it is not the observer's.
        quant_max: the last code.
        is_dynamic: the scale is that of each tensor.
        observer_kwargs: arguments of the observer.

    Example:
        >>> rounds = torch.ao.quantization.FakeQuantize(quant_min=0, quant_max=255)
        >>> rounds(torch.tensor([0.0, 0.1, 2.55]))
        tensor([0.0000, 0.1000, 2.5500])
        >>> torch.ao.quantization.disable_fake_quant(rounds)
        >>> rounds(torch.tensor([0.123]))  # as it comes
        tensor([0.1230])
    """

    scale: Any
    zero_point: Any

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        self.quant_min = self.activation_post_process.quant_min
        self.quant_max = self.activation_post_process.quant_max
        self.is_dynamic = self.activation_post_process.is_dynamic
        self.qscheme = self.activation_post_process.qscheme
        whole = self.qscheme is not rushlight.per_channel_affine_float_qparams
        self.register_buffer("scale", rushlight.tensor([1.0], dtype=rushlight.float))
        kind = rushlight.int if whole else rushlight.float
        self.register_buffer("zero_point", rushlight.tensor([0], dtype=kind))
        self.dtype = self.activation_post_process.dtype
        self.ch_axis = getattr(self.activation_post_process, "ch_axis", -1)
        self.is_per_channel = self.qscheme in _PER_CHANNEL

    def calculate_qparams(self):
        """The scale and the zero point for what has been observed."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self.calculate_qparams()
            self.scale.resize_(scale.shape).copy_(scale)
            self.zero_point.resize_(zero_point.shape).copy_(zero_point)
        if self.fake_quant_enabled[0] != 1:
            return X
        ends = self.quant_min, self.quant_max
        if self.is_per_channel:
            return rushlight.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, *ends
            )
        return rushlight.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *ends)

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        # How many channels there are is not known before the first tensor.
        for name in ("scale", "zero_point"):
            if (value := state_dict.get(prefix + name)) is not None:
                getattr(self, name).resize_(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds floats to codes of a fixed scale.

    Args:
        observer: the constructor of a `FixedQParamsObserver`.

    Example:
        >>> from rushlight.ao.quantization import FixedQParamsFakeQuantize, FixedQParamsObserver
        >>> observer = FixedQParamsObserver.with_args(scale=0.5, zero_point=0)
        >>> FixedQParamsFakeQuantize(observer)(torch.tensor([0.6, 0.8]))
        tensor([0.5000, 1.0000])
    """

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def calculate_qparams(self):
        """The scale and the zero point for what has been observed."""
        return self.scale, self.zero_point

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with moving averages, all in one op.

    Args:
        observer: a class of observers of moving averages.
        quant_min: the first code.
        quant_max: the last code.
        is_dynamic: the scale is that of each tensor.
        observer_kwargs: arguments of the observer.

    Example:
        >>> rounds = torch.ao.quantization.FusedMovingAvgObsFakeQuantize()
        >>> rounds(torch.tensor([0.0, 0.1, 2.55]))
        tensor([0.0000, 0.1000, 2.5500])
    """

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, is_dynamic, **observer_kwargs)
        kinds = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, kinds):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver"
            )
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, rushlight.tensor([1], dtype=rushlight.long))
        self.is_symmetric_quant = self.qscheme in (
            rushlight.per_tensor_symmetric,
            rushlight.per_channel_symmetric,
        )

    def calculate_qparams(self):
        """The scale and the zero point for what has been observed."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        switches = (self.observer_enabled, self.fake_quant_enabled)
        observer = self.activation_post_process
        state = (observer.min_val, observer.max_val, self.scale, self.zero_point)
        form = (self.quant_min, self.quant_max, self.ch_axis, self.is_per_channel)
        return rushlight.fused_moving_avg_obs_fake_quant(
            X, *switches, *state, observer.averaging_constant, *form, self.is_symmetric_quant
        )


# ---- the usual ones ----

default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=rushlight.quint8,
    qscheme=rushlight.per_tensor_affine,
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_tensor_symmetric,
    reduce_range=False,
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    is_dynamic=True,
    dtype=rushlight.quint8,
    averaging_constant=1,
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=rushlight.per_channel_affine_float_qparams,
    dtype=rushlight.quint8,
    quant_min=0,
    quant_max=255,
    ch_axis=0,
    averaging_constant=1,
)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=rushlight.per_channel_affine_float_qparams,
    ch_axis=0,
    dtype=rushlight.quint4x2,
    averaging_constant=1,
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver,
    quant_min=0,
    quant_max=255,
    dtype=rushlight.quint8,
    qscheme=rushlight.per_tensor_affine,
    reduce_range=True,
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=rushlight.quint8
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_tensor_symmetric,
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_channel_symmetric,
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-127,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_tensor_symmetric,
    eps=2**-12,
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-127,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_channel_symmetric,
    eps=2**-12,
)


# ---- switches of a whole network, for `model.apply` ----


def disable_fake_quant(mod: nn.Module):
    """Turn rounding off if `mod` is a fake quantisation.

    Args:
        mod: any module, as `model.apply` gives it.

    For an example see `ao.quantization.FakeQuantize`.
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod: nn.Module):
    """Turn rounding on if `mod` is a fake quantisation.

    Args:
        mod: any module, as `model.apply` gives it.

    For an example see `ao.quantization.FakeQuantize`.
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod: nn.Module):
    """Turn observing off if `mod` is a fake quantisation.

    Args:
        mod: any module, as `model.apply` gives it.

    Example:
        >>> rounds = torch.ao.quantization.FakeQuantize()
        >>> _ = rounds.apply(torch.ao.quantization.disable_observer)
        >>> rounds.observer_enabled.item()
        0
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod: nn.Module):
    """Turn observing on if `mod` is a fake quantisation.

    Args:
        mod: any module, as `model.apply` gives it.

    For an example see `ao.quantization.disable_observer`.
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()
