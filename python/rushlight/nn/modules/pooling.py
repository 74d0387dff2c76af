"""Pooling: most layers are generated from ops/modules.py; the others are written here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight import Tensor

from .. import functional as F
from ._stateless.pooling import *  # noqa: F403
from ._stateless.pooling import __all__ as _generated
from .module import Module
from .utils import (  # noqa: F401  # PyTorch has them here, too
    _documented,
    _ntuple,
    _pair,
    _single,
    _triple,
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *(name for name in _generated if not name.startswith("_")),
        "FractionalMaxPool2d",
        "FractionalMaxPool3d",
        "MaxUnpool1d",
        "MaxUnpool2d",
        "MaxUnpool3d",
    ]


class _MaxUnpoolNd(Module):
    """Puts maxima back to where they were found, zeros elsewhere.

    Args:
        kernel_size, stride, padding: of the pooling that is undone.
    """

    _dims = 0

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: Any = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        listed = _ntuple(self._dims)
        self.kernel_size = listed(kernel_size)
        self.stride = listed(kernel_size if stride is None else stride)
        self.padding = listed(padding)

    def forward(self, input: Tensor, indices, output_size=None):
        """The image; `output_size` chooses among the sizes that pool to the input's."""
        undo = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self._dims - 1]
        return undo(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    __doc__ = _documented(
        _MaxUnpoolNd,
        """Shape: (N, C, L), and indices of the same sizes.

        Example:
            >>> pool = torch.nn.MaxPool1d(2, return_indices=True)
            >>> torch.nn.MaxUnpool1d(2)(*pool(torch.ones(1, 1, 4))).shape
            torch.Size([1, 1, 4])
        """,
    )
    _dims = 1


class MaxUnpool2d(_MaxUnpoolNd):
    __doc__ = _documented(
        _MaxUnpoolNd,
        """Shape: (N, C, H, W), and indices of the same sizes.

        Example:
            >>> pool = torch.nn.MaxPool2d(2, return_indices=True)
            >>> torch.nn.MaxUnpool2d(2)(*pool(torch.ones(1, 1, 4, 4))).shape
            torch.Size([1, 1, 4, 4])
        """,
    )
    _dims = 2


class MaxUnpool3d(_MaxUnpoolNd):
    __doc__ = _documented(
        _MaxUnpoolNd,
        """Shape: (N, C, D, H, W), and indices of the same sizes.

        Example:
            >>> pool = torch.nn.MaxPool3d(2, return_indices=True)
            >>> torch.nn.MaxUnpool3d(2)(*pool(torch.ones(1, 1, 4, 4, 4))).shape
            torch.Size([1, 1, 4, 4, 4])
        """,
    )
    _dims = 3


class _FractionalMaxPoolNd(Module):
    """The largest values of windows at random, nearly equal distances.

    Args:
        kernel_size: the kernel size of the windows.
        output_size, output_ratio: one of them: how many windows, or what part of the input's size.
        return_indices: give the places, too.
    """

    _dims = 0

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        listed = _ntuple(self._dims)
        name = type(self).__name__
        self.kernel_size = listed(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else listed(output_size)
        self.output_ratio = None if output_ratio is None else listed(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor):
        pool = F.fractional_max_pool2d if self._dims == 2 else F.fractional_max_pool3d
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    __doc__ = _documented(
        _FractionalMaxPoolNd,
        """Shape: (N, C, H, W) or (C, H, W).

        Example:
            >>> torch.nn.FractionalMaxPool2d(2, output_size=3)(torch.zeros(1, 2, 8, 8)).shape
            torch.Size([1, 2, 3, 3])
        """,
    )
    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    __doc__ = _documented(
        _FractionalMaxPoolNd,
        """Shape: (N, C, D, H, W) or (C, D, H, W).

        Example:
            >>> torch.nn.FractionalMaxPool3d(2, output_size=2)(torch.zeros(1, 2, 4, 4, 4)).shape
            torch.Size([1, 2, 2, 2, 2])
        """,
    )
    _dims = 3
