"""`interpolate` and its old names; public in `nn.functional`."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight._table import ops
from rushlight._warnings import warn

from ._arguments import _dims

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize images (N, C, ...) to a size or by a factor; one number is for all dimensions.

    Args:
        mode: "nearest", "nearest-exact", "area", "linear" (of vectors), "bilinear", "bicubic" (of
            images), "trilinear" (of volumes).
        align_corners: whether the centres of the corner pixels of both images coincide, instead of
            the corners of the images.
        recompute_scale_factor: whether positions are computed from the rounded size instead of the
            given factors.
        antialias: whether a smaller image is smoothed, as with Pillow.
        input: the tensor to compute with.
        size: the spatial sizes of the result.
        scale_factor: how many times larger it becomes, instead of `size`.

    Example:
        >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
        >>> torch.nn.functional.interpolate(
        ...     torch.zeros(1, 3, 8, 8), size=(4, 4), mode="bilinear"
        ... ).shape
        torch.Size([1, 3, 4, 4])
    """
    dims = _dims("interpolate", input) - 2
    return ops.interpolate(
        input,
        _for_each(size, dims),
        _for_each(scale_factor, dims),
        mode,
        align_corners,
        recompute_scale_factor,
        antialias,
    )


def _for_each(value, dims):
    return value if value is None or isinstance(value, (list, tuple)) else [value] * dims


def _warn_of_old_name(name: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Deprecated name of `interpolate`.

    Args:
        input: the tensor to compute with.
        size: the spatial sizes of the result.
        scale_factor: how many times larger each spatial dimension becomes.
        mode: see `interpolate`.
        align_corners: whether the outermost elements of input and result have their centres
            in common.

    Example:
        >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    _warn_of_old_name("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` to the nearest pixel; deprecated.

    For an example see `nn.functional.interpolate`.

    Args:
        input: the tensor (N, C, ...).
        size: the spatial sizes of the result.
        scale_factor: how many times larger each spatial dimension becomes.
    """
    _warn_of_old_name("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode="bilinear" and align_corners=True; deprecated.

    For an example see `nn.functional.interpolate`.

    Args:
        input: the tensor (N, C, H, W).
        size: the spatial sizes of the result.
        scale_factor: how many times larger each spatial dimension becomes.
    """
    _warn_of_old_name("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
