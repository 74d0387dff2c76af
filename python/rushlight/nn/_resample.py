"""The old names of `interpolate`; public in `nn.functional`."""

import warnings

from rushlight._table import ops

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _warn_of_old_name(name):
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The old name of `interpolate`."""
    _warn_of_old_name("upsample")
    return ops.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` to the nearest pixel; deprecated."""
    _warn_of_old_name("upsample_nearest")
    return ops.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` with mode="bilinear" and align_corners=True; deprecated."""
    _warn_of_old_name("upsample_bilinear")
    return ops.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
