"""The classes that replace modules when networks are quantised."""

from __future__ import annotations

import copy
from typing import Any

from rushlight import nn
from rushlight.ao.nn import intrinsic, qat, quantized
from rushlight.ao.nn.intrinsic import qat as intrinsic_qat
from rushlight.ao.nn.intrinsic import quantized as intrinsic_quantized
from rushlight.ao.nn.quantized import dynamic
from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub

__all__ = [
    "get_default_dynamic_quant_module_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "no_observer_set",
]

_STATIC: dict[Any, Any] = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    nn.BatchNorm2d: quantized.BatchNorm2d,
    nn.BatchNorm3d: quantized.BatchNorm3d,
    nn.Dropout: quantized.Dropout,
    nn.Conv1d: quantized.Conv1d,
    nn.Conv2d: quantized.Conv2d,
    nn.Conv3d: quantized.Conv3d,
    nn.ReLU6: quantized.ReLU6,
    nn.Linear: quantized.Linear,
    nn.modules.linear.NonDynamicallyQuantizableLinear: quantized.Linear,
    quantized.FloatFunctional: quantized.QFunctional,
    intrinsic.BNReLU2d: intrinsic_quantized.BNReLU2d,
    intrinsic.BNReLU3d: intrinsic_quantized.BNReLU3d,
    intrinsic.ConvReLU1d: intrinsic_quantized.ConvReLU1d,
    intrinsic.ConvReLU2d: intrinsic_quantized.ConvReLU2d,
    intrinsic.ConvReLU3d: intrinsic_quantized.ConvReLU3d,
    intrinsic.LinearReLU: intrinsic_quantized.LinearReLU,
    intrinsic_qat.ConvBn1d: quantized.Conv1d,
    intrinsic_qat.ConvBn2d: quantized.Conv2d,
    intrinsic_qat.ConvBn3d: quantized.Conv3d,
    intrinsic_qat.ConvBnReLU1d: intrinsic_quantized.ConvReLU1d,
    intrinsic_qat.ConvBnReLU2d: intrinsic_quantized.ConvReLU2d,
    intrinsic_qat.ConvBnReLU3d: intrinsic_quantized.ConvReLU3d,
    intrinsic_qat.ConvReLU1d: intrinsic_quantized.ConvReLU1d,
    intrinsic_qat.ConvReLU2d: intrinsic_quantized.ConvReLU2d,
    intrinsic_qat.ConvReLU3d: intrinsic_quantized.ConvReLU3d,
    intrinsic_qat.LinearReLU: intrinsic_quantized.LinearReLU,
    qat.Linear: quantized.Linear,
    qat.Conv1d: quantized.Conv1d,
    qat.Conv2d: quantized.Conv2d,
    qat.Conv3d: quantized.Conv3d,
}
_QAT: dict[Any, Any] = {
    nn.Conv1d: qat.Conv1d,
    nn.Conv2d: qat.Conv2d,
    nn.Conv3d: qat.Conv3d,
    nn.Linear: qat.Linear,
    nn.modules.linear.NonDynamicallyQuantizableLinear: qat.Linear,
    intrinsic.ConvBn1d: intrinsic_qat.ConvBn1d,
    intrinsic.ConvBn2d: intrinsic_qat.ConvBn2d,
    intrinsic.ConvBn3d: intrinsic_qat.ConvBn3d,
    intrinsic.ConvBnReLU1d: intrinsic_qat.ConvBnReLU1d,
    intrinsic.ConvBnReLU2d: intrinsic_qat.ConvBnReLU2d,
    intrinsic.ConvBnReLU3d: intrinsic_qat.ConvBnReLU3d,
    intrinsic.ConvReLU1d: intrinsic_qat.ConvReLU1d,
    intrinsic.ConvReLU2d: intrinsic_qat.ConvReLU2d,
    intrinsic.ConvReLU3d: intrinsic_qat.ConvReLU3d,
    intrinsic.LinearReLU: intrinsic_qat.LinearReLU,
    intrinsic.LinearBn1d: intrinsic_qat.LinearBn1d,
}
_DYNAMIC: dict[Any, Any] = {
    nn.GRUCell: dynamic.GRUCell,
    nn.Linear: dynamic.Linear,
    nn.modules.linear.NonDynamicallyQuantizableLinear: dynamic.Linear,
    nn.LSTM: dynamic.LSTM,
    nn.GRU: dynamic.GRU,
    nn.LSTMCell: dynamic.LSTMCell,
    nn.RNNCell: dynamic.RNNCell,
}


def get_default_static_quant_module_mappings():
    """From float modules with observers, or trained ones, to quantised ones.

    For an example see `ao.quantization.get_default_dynamic_quant_module_mappings`.
    """
    return copy.copy(_STATIC)


def get_default_qat_module_mappings():
    """From float modules to those for quantisation-aware training.

    For an example see `ao.quantization.get_default_dynamic_quant_module_mappings`.
    """
    return copy.copy(_QAT)


def get_default_dynamic_quant_module_mappings():
    """From float modules to dynamically quantised ones.

    Example:
        >>> from rushlight import nn
        >>> torch.ao.quantization.get_default_dynamic_quant_module_mappings()[nn.Linear].__module__
        'rushlight.ao.nn.quantized.dynamic.modules'
    """
    return copy.copy(_DYNAMIC)


def get_default_qconfig_propagation_list() -> set[Any]:
    """The classes of modules whose results are observed.

    Example:
        >>> torch.nn.Linear in torch.ao.quantization.get_default_qconfig_propagation_list()
        True
    """
    return {*_STATIC, *_QAT, *_DYNAMIC, nn.ReLU}


def no_observer_set():
    """The classes of modules whose results need no observer, because they have their inputs'
    codes.

    Example:
        >>> torch.nn.Dropout in torch.ao.quantization.no_observer_set()
        True
    """
    return {nn.Dropout}
