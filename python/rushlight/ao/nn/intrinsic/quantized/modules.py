"""Layers of codes with relu in them."""

from __future__ import annotations

from rushlight.ao.nn.quantized import modules as quantized

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]


class LinearReLU(quantized.Linear):
    """A linear layer of codes, and relu."""

    _relu = True

    def _get_name(self):
        return "QuantizedLinearReLU"


class ConvReLU1d(quantized.Conv1d):
    """A convolution of codes, and relu."""

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU1d"


class ConvReLU2d(quantized.Conv2d):
    """A convolution of codes, and relu."""

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU2d"


class ConvReLU3d(quantized.Conv3d):
    """A convolution of codes, and relu."""

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU3d"


class BNReLU2d(quantized.BatchNorm2d):
    """A batch norm of codes, and relu."""

    def forward(self, input):
        return super().forward(input).relu()


class BNReLU3d(quantized.BatchNorm3d):
    """A batch norm of codes, and relu."""

    def forward(self, input):
        return super().forward(input).relu()
