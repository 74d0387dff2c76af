"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, layers):
    for layer in module.modules():
        if isinstance(layer, layers):
            layer.weight.data = layer.weight.detach().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format):
    """Bring the weights of all Conv2d in `module` into a format; returns the module."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Module, memory_format):
    """Bring the weights of all Conv3d in `module` into a format; returns the module."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
