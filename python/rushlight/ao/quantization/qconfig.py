"""`QConfig`: the observers of a module's results and of its weight."""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight.ao.quantization.fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from rushlight.ao.quantization.observer import (
    HistogramObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    _PartialWrapper,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)

__all__ = [
    "QConfig",
    "QConfigAny",
    "QConfigDynamic",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig",
    "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit",
    "default_per_channel_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "per_channel_dynamic_qconfig",
    "qconfig_equals",
]


class _Two(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Two):
    """The constructors, not instances, of the observers for results and for the weight.

    Args:
        activation: for what modules give.
        weight: for their weight.

    Example:
        >>> from rushlight.ao.quantization import MinMaxObserver, QConfig
        >>> config = QConfig(
        ...     activation=MinMaxObserver, weight=MinMaxObserver.with_args(dtype=torch.qint8)
        ... )
        >>> config.weight()  # an observer
        MinMaxObserver(min_val=inf, max_val=-inf)
    """

    __slots__ = ()

    def __new__(cls, activation, weight):
        if any(isinstance(part, rushlight.nn.Module) for part in (activation, weight)):
            raise ValueError(
                "QConfig received observer instance: it takes a class, or what its "
                "`with_args` makes of arguments for the constructor"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(_Two):
    """Deprecated form of `QConfig` for dynamic quantisation.

    Args:
        activation: for what modules give.
        weight: for their weight.

    For an example see `ao.quantization.QConfig`.
    """

    __slots__ = ()

    def __new__(cls, activation=rushlight.nn.Identity, weight=rushlight.nn.Identity):
        if isinstance(weight, rushlight.nn.Module):
            raise ValueError(
                "QConfigDynamic received observer instance: it takes a class, or what its "
                "`with_args` makes of arguments for the constructor"
            )
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=rushlight.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=rushlight.float16),
)
float16_static_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=rushlight.float16),
    PlaceholderObserver.with_args(dtype=rushlight.float16),
)
per_channel_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    default_placeholder_observer, default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    default_placeholder_observer, default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(rushlight.nn.Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, rushlight.nn.Identity)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
default_embedding_qat_qconfig = QConfig(NoopObserver, default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(NoopObserver, default_embedding_fake_quant_4bit)
default_symmetric_qnnpack_qconfig = QConfig(
    HistogramObserver.with_args(dtype=rushlight.qint8, reduce_range=False, eps=2**-12),
    weight_observer_range_neg_127_to_127,
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    HistogramObserver.with_args(dtype=rushlight.qint8, reduce_range=False, eps=2**-12),
    per_channel_weight_observer_range_neg_127_to_127,
)


def _fused_observer(**kwargs):
    return FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, **kwargs)


default_symmetric_qnnpack_qat_qconfig = QConfig(
    _fused_observer(
        quant_min=-128, quant_max=127, dtype=rushlight.qint8, reduce_range=False, eps=2**-12
    ),
    fused_wt_fake_quant_range_neg_127_to_127,
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _fused_observer(
        quant_min=-128, quant_max=127, dtype=rushlight.qint8, reduce_range=False, eps=2**-12
    ),
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
)

_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def _check(backend, version, versions):
    if backend not in _BACKENDS:
        raise AssertionError(
            f"backend: {backend} not supported. backend must be one of {list(_BACKENDS)}"
        )
    if version not in versions:
        raise AssertionError(
            f"Version number: {version} in get_default_qconfig is not supported. Version number "
            f"must be one of {versions}"
        )


def get_default_qconfig(backend="x86", version: int = 0):
    """The default for a network that is calibrated.

    Args:
        backend: "fbgemm" or "x86" (codes of 7 bits, scales by channels), "onednn", "qnnpack".
        version: 0.

    For an example see `ao.quantization.quantize`.
    """
    _check(backend, version, [0])
    weight = (
        default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    )
    halved = backend in ("fbgemm", "x86")
    return QConfig(HistogramObserver.with_args(reduce_range=halved), weight)


def get_default_qat_qconfig(backend="x86", version: int = 1):
    """The default for quantisation-aware training.

    Args:
        backend: see `get_default_qconfig`.
        version: 0, observers and rounding apart, or 1, both in one op.

    For an example see `ao.quantization.prepare_qat`.
    """
    _check(backend, version, [0, 1])
    halved = backend in ("fbgemm", "x86")
    if version == 0:
        activation = FakeQuantize.with_args(
            observer=MovingAverageMinMaxObserver,
            quant_min=0,
            quant_max=255,
            reduce_range=halved,
        )
        whole, channels = default_weight_fake_quant, default_per_channel_weight_fake_quant
    else:
        activation = _fused_observer(quant_min=0, quant_max=255, reduce_range=halved)
        whole, channels = default_fused_wt_fake_quant, default_fused_per_channel_wt_fake_quant
    return QConfig(activation, whole if backend == "qnnpack" else channels)


def _equal_constructors(a, b) -> bool:
    """Whether two constructors make the same: class and arguments, how ever nested."""
    if not (isinstance(a, _PartialWrapper) and isinstance(b, _PartialWrapper)):
        return a is b or a == b

    def flat(p):
        function, kwargs = p, {}
        while hasattr(function, "func") or isinstance(function, _PartialWrapper):
            if isinstance(function, _PartialWrapper):
                function = function.p
            else:
                kwargs = {**function.keywords, **kwargs}
                function = function.func
        return function, kwargs

    (f, x), (g, y) = flat(a), flat(b)
    return (
        f == g and x.keys() == y.keys() and all(_equal_constructors(x[name], y[name]) for name in x)
    )


def qconfig_equals(q1: Any, q2: Any):
    """Whether two qconfigs make the same observers.

    Args:
        q1: a qconfig or None.
        q2: another one.

    Example:
        >>> from rushlight.ao.quantization import get_default_qconfig, qconfig_equals
        >>> qconfig_equals(get_default_qconfig("x86"), get_default_qconfig("qnnpack"))
        False
    """
    if q1 is None or q2 is None:
        return q1 is q2
    return _equal_constructors(q1.activation, q2.activation) and _equal_constructors(
        q1.weight, q2.weight
    )
