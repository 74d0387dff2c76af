"""Quantisation: the names that programs import; what networks are written with works.

`QuantStub`, `DeQuantStub` and `QuantWrapper` do nothing until a network is converted, and nothing
converts one yet.
"""

from __future__ import annotations

from rushlight import _refused, nn

__all__ = [
    "DeQuantStub",
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "QConfig",
    "QConfigMapping",
    "QuantStub",
    "QuantWrapper",
    "RecordingObserver",
    "add_quant_dequant",
    "convert",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fuse_modules",
    "fuse_modules_qat",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]

_WHY = "networks are not quantised"

FakeQuantize = _refused.kind("FakeQuantize", __name__, _WHY)
FakeQuantizeBase = _refused.kind("FakeQuantizeBase", __name__, _WHY)
FixedQParamsFakeQuantize = _refused.kind("FixedQParamsFakeQuantize", __name__, _WHY)
FusedMovingAvgObsFakeQuantize = _refused.kind("FusedMovingAvgObsFakeQuantize", __name__, _WHY)
HistogramObserver = _refused.kind("HistogramObserver", __name__, _WHY)
MinMaxObserver = _refused.kind("MinMaxObserver", __name__, _WHY)
MovingAverageMinMaxObserver = _refused.kind("MovingAverageMinMaxObserver", __name__, _WHY)
MovingAveragePerChannelMinMaxObserver = _refused.kind(
    "MovingAveragePerChannelMinMaxObserver", __name__, _WHY
)
NoopObserver = _refused.kind("NoopObserver", __name__, _WHY)
ObserverBase = _refused.kind("ObserverBase", __name__, _WHY)
PerChannelMinMaxObserver = _refused.kind("PerChannelMinMaxObserver", __name__, _WHY)
PlaceholderObserver = _refused.kind("PlaceholderObserver", __name__, _WHY)
QConfig = _refused.kind("QConfig", __name__, _WHY)
QConfigMapping = _refused.kind("QConfigMapping", __name__, _WHY)
RecordingObserver = _refused.kind("RecordingObserver", __name__, _WHY)
add_quant_dequant = _refused.function("torch.ao.quantization.add_quant_dequant", _WHY)
convert = _refused.function("torch.ao.quantization.convert", _WHY)
disable_fake_quant = _refused.function("torch.ao.quantization.disable_fake_quant", _WHY)
disable_observer = _refused.function("torch.ao.quantization.disable_observer", _WHY)
enable_fake_quant = _refused.function("torch.ao.quantization.enable_fake_quant", _WHY)
enable_observer = _refused.function("torch.ao.quantization.enable_observer", _WHY)
fuse_modules = _refused.function("torch.ao.quantization.fuse_modules", _WHY)
fuse_modules_qat = _refused.function("torch.ao.quantization.fuse_modules_qat", _WHY)
get_default_qat_qconfig = _refused.function("torch.ao.quantization.get_default_qat_qconfig", _WHY)
get_default_qconfig = _refused.function("torch.ao.quantization.get_default_qconfig", _WHY)
prepare = _refused.function("torch.ao.quantization.prepare", _WHY)
prepare_qat = _refused.function("torch.ao.quantization.prepare_qat", _WHY)
propagate_qconfig_ = _refused.function("torch.ao.quantization.propagate_qconfig_", _WHY)
quantize = _refused.function("torch.ao.quantization.quantize", _WHY)
quantize_dynamic = _refused.function("torch.ao.quantization.quantize_dynamic", _WHY)
quantize_qat = _refused.function("torch.ao.quantization.quantize_qat", _WHY)
swap_module = _refused.function("torch.ao.quantization.swap_module", _WHY)


class _Stub(nn.Module):
    """Marks a place of a network; gives its input back.

    Args:
        qconfig: how the place is to be quantised, kept for those who look.
    """

    def __init__(self, qconfig=None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Stub):
    """Where numbers are to become quantised: the input as it is."""


class DeQuantStub(_Stub):
    """Where they are to become floats again: the input as it is."""


class QuantWrapper(nn.Module):
    """A module between the two marks."""

    def __init__(self, module) -> None:
        super().__init__()
        self.quant = QuantStub(getattr(module, "qconfig", None))
        self.dequant = DeQuantStub(getattr(module, "qconfig", None))
        self.module = module
        self.train(module.training)

    def forward(self, x):
        return self.dequant(self.module(self.quant(x)))
