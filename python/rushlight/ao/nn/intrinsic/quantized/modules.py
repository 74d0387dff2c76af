"""Quantised layers followed by relu."""

from __future__ import annotations

from rushlight.ao.nn.quantized import modules as quantized

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]


class LinearReLU(quantized.Linear):
    """A quantised linear layer followed by relu.

    For an example see `ao.quantization.quantize`.
    """

    _relu = True

    def _get_name(self):
        return "QuantizedLinearReLU"


class ConvReLU1d(quantized.Conv1d):
    """A quantised 1-d convolution followed by relu.

    For an example see `ao.quantization.quantize`.
    """

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU1d"


class ConvReLU2d(quantized.Conv2d):
    """A quantised 2-d convolution followed by relu.

    For an example see `ao.quantization.quantize`.
    """

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU2d"


class ConvReLU3d(quantized.Conv3d):
    """A quantised 3-d convolution followed by relu.

    For an example see `ao.quantization.quantize`.
    """

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU3d"


class BNReLU2d(quantized.BatchNorm2d):
    """A quantised 2-d batch norm followed by relu.

    For an example see `ao.quantization.quantize`.
    """

    def forward(self, input):
        return super().forward(input).relu()


class BNReLU3d(quantized.BatchNorm3d):
    """A quantised 3-d batch norm followed by relu.

    For an example see `ao.quantization.quantize`.
    """

    def forward(self, input):
        return super().forward(input).relu()
