"""Fused modules: sequences of modules that quantisation treats as one."""

from __future__ import annotations

from rushlight import nn

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearReLU",
]


class _FusedModule(nn.Sequential):
    """Modules that are one to quantisation."""

    _parts: tuple[type, ...] = ()

    def __init__(self, *modules: nn.Module) -> None:
        kinds = [type(module) for module in modules]
        if len(kinds) != len(self._parts) or not all(map(issubclass, kinds, self._parts)):
            wanted = ", ".join(part.__name__ for part in self._parts)
            found = ", ".join(kind.__name__ for kind in kinds)
            raise AssertionError(f"Incorrect types for input modules: {found}; expected {wanted}")
        super().__init__(*modules)


class ConvReLU1d(_FusedModule):
    """A 1-d convolution followed by relu.

    Args:
        modules: the convolution and the `nn.ReLU`.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Conv1d, nn.ReLU)


class ConvReLU2d(_FusedModule):
    """A 2-d convolution followed by relu.

    Args:
        modules: the convolution and the `nn.ReLU`.

    Example:
        >>> from rushlight import nn
        >>> layer = torch.ao.nn.intrinsic.ConvReLU2d(nn.Conv2d(3, 8, 3), nn.ReLU())
        >>> layer(torch.ones(1, 3, 8, 8)).shape
        torch.Size([1, 8, 6, 6])
    """

    _parts = (nn.Conv2d, nn.ReLU)


class ConvReLU3d(_FusedModule):
    """A 3-d convolution followed by relu.

    Args:
        modules: the convolution and the `nn.ReLU`.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Conv3d, nn.ReLU)


class LinearReLU(_FusedModule):
    """A linear layer followed by relu.

    Args:
        modules: the linear layer and the `nn.ReLU`.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Linear, nn.ReLU)


class ConvBn1d(_FusedModule):
    """A 1-d convolution followed by its batch norm.

    Args:
        modules: the convolution and the batch norm.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Conv1d, nn.BatchNorm1d)


class ConvBn2d(_FusedModule):
    """A 2-d convolution followed by its batch norm.

    Args:
        modules: the convolution and the batch norm.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Conv2d, nn.BatchNorm2d)


class ConvBn3d(_FusedModule):
    """A 3-d convolution followed by its batch norm.

    Args:
        modules: the convolution and the batch norm.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Conv3d, nn.BatchNorm3d)


class ConvBnReLU1d(_FusedModule):
    """A 1-d convolution followed by its batch norm and relu.

    Args:
        modules: the convolution, the batch norm and the `nn.ReLU`.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU)


class ConvBnReLU2d(_FusedModule):
    """A 2-d convolution followed by its batch norm and relu.

    Args:
        modules: the convolution, the batch norm and the `nn.ReLU`.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Conv2d, nn.BatchNorm2d, nn.ReLU)


class ConvBnReLU3d(_FusedModule):
    """A 3-d convolution followed by its batch norm and relu.

    Args:
        modules: the convolution, the batch norm and the `nn.ReLU`.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Conv3d, nn.BatchNorm3d, nn.ReLU)


class BNReLU2d(_FusedModule):
    """A 2-d batch norm followed by relu.

    Args:
        modules: the batch norm and the `nn.ReLU`.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.BatchNorm2d, nn.ReLU)


class BNReLU3d(_FusedModule):
    """A 3-d batch norm followed by relu.

    Args:
        modules: the batch norm and the `nn.ReLU`.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.BatchNorm3d, nn.ReLU)


class LinearBn1d(_FusedModule):
    """A linear layer followed by its batch norm.

    Args:
        modules: the linear layer and the batch norm.

    For an example see `ao.nn.intrinsic.ConvReLU2d`.
    """

    _parts = (nn.Linear, nn.BatchNorm1d)
