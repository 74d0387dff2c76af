"""Upsample and its two deprecated special cases: `nn.functional.interpolate` as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import Tensor

from .. import functional as F
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


def _as_floats(factor) -> float | tuple[float, ...] | None:
    """A factor, or the factors of all dimensions; None for none."""
    if isinstance(factor, tuple):
        return tuple(map(float, factor))
    return float(factor) if factor else None


class Upsample(Module):
    """Resizes images; the arguments are those of `nn.functional.interpolate`.

    Args:
        size: the spatial sizes of the result.
        scale_factor: how many times larger each spatial dimension becomes.
        mode: which variant to compute, by name.
        align_corners: whether the outermost elements of input and result have their centres
            in common.
        recompute_scale_factor: whether the factor is taken from the rounded sizes.

    Shape: (N, C, *spatial) to the same with larger spatial sizes.

    Example:
        >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name, self.size = type(self).__name__, size
        self.scale_factor = _as_floats(scale_factor)
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor):
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def __setstate__(self, state):
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of (N, C, H, W) to the nearest pixel.

    Args:
        size: the spatial sizes of the result.
        scale_factor: how many times larger each spatial dimension becomes.

    Shape: (N, C, H, W) to (N, C, *size), or (N, C, H scale_factor, W scale_factor).

    Example:
        >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of (N, C, H, W) with mode="bilinear" and align_corners=True.

    Args:
        size: the spatial sizes of the result.
        scale_factor: how many times larger each spatial dimension becomes.

    Shape: (N, C, H, W) to (N, C, *size), or (N, C, H scale_factor, W scale_factor).

    Example:
        >>> torch.nn.UpsamplingBilinear2d(size=(3, 3))(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 3, 3])
    """

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
