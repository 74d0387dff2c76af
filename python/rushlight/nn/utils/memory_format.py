"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

if TYPE_CHECKING:
    from typing import Any

    from rushlight.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, layers):
    for layer in module.modules():
        if isinstance(layer, layers):
            layer.weight.data = layer.weight.detach().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Bring the weights of all Conv2d in `module` into a format; returns the module.

    Args:
        module: the module.
        memory_format: `torch.channels_last` or `torch.contiguous_format`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
        >>> net = torch.nn.utils.convert_conv2d_weight_memory_format(net, torch.channels_last)
        >>> net[0].weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Bring the weights of all Conv3d in `module` into a format; returns the module.

    Args:
        module: the module.
        memory_format: `torch.channels_last_3d` or `torch.contiguous_format`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv3d(3, 4, 3))
        >>> net = torch.nn.utils.convert_conv3d_weight_memory_format(net, torch.channels_last_3d)
        >>> net[0].weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
