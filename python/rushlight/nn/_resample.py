"""`interpolate`, `grid_sample` and their relatives; public in `nn.functional`.

Each checks its arguments and calls an op of ops/resample.py.
"""

import math
import warnings

from rushlight._table import ops

_BY_DIMS = {3: "linear", 4: "bilinear bicubic", 5: "trilinear"}
_ANY = ("nearest", "nearest-exact", "area")
_SOME = ("linear", "bilinear", "bicubic", "trilinear")
_ALL = "nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact"


def _per_dim(name, value, dims, input):
    """A list with an item for each image dimension."""
    if not isinstance(value, (list, tuple)):
        return [value] * dims
    if len(value) != dims:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and {name} of {value}. Please provide "
            "input tensor in (N, C, d1, d2, ...,dK) format and one value for each of d1 to dK."
        )
    return list(value)


def _resize(input, mode, size, scales, align_corners, antialias):
    before = [None] * (3 - len(size))
    scales = [None] * len(size) if scales is None else [float(s) for s in scales]
    size = [int(n) for n in size]
    return ops._interpolate(input, size, mode, align_corners, antialias, *before, *scales)


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Images at another size.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W); floating or uint8.
        size, scale_factor: one of them; a number or one for each image dimension.
        mode: "nearest", "nearest-exact", "area", or as many dimensions want "linear", "bilinear",
            "bicubic", "trilinear".
        align_corners: the middles of the outermost pixels stay where they are.
        recompute_scale_factor: use the ratio of the sizes, not the given factor.
        antialias: smooth what shrinks (bilinear and bicubic).

    Raises ValueError for arguments that contradict each other and NotImplementedError for a mode
    that does not fit the number of dimensions.
    """
    if mode in _ANY and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | "
            "bilinear | bicubic | trilinear"
        )
    align_corners = bool(align_corners)
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    scales = None
    if size is not None:
        size = _per_dim("output size", size, dims, input)
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    else:
        scales = _per_dim("scale_factor", scale_factor, dims, input)
        size = [math.floor(n * float(s)) for n, s in zip(input.shape[2:], scales, strict=True)]
        if recompute_scale_factor or mode == "area":
            scales = None
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if input.dim() not in _BY_DIMS or (mode not in _ANY and mode not in _SOME):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported"
            f" (got {input.dim()}D) for the modes: {_ALL} (got {mode})"
        )
    if mode in _ANY or mode in _BY_DIMS[input.dim()].split():
        if mode == "area":
            pool = (ops.adaptive_avg_pool1d, ops.adaptive_avg_pool2d, ops.adaptive_avg_pool3d)
            return pool[dims - 1](input, [int(n) for n in size])
        return _resize(input, mode, size, scales, align_corners, antialias)
    wanted = next(d for d, modes in _BY_DIMS.items() if mode in modes.split())
    raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {wanted}D input")


def _warn_of_old_name(name):
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The old name of `interpolate`."""
    _warn_of_old_name("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` to the nearest pixel; deprecated."""
    _warn_of_old_name("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` with mode="bilinear" and align_corners=True; deprecated."""
    _warn_of_old_name("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _align_corners(name, given):
    """What is given, or else False with a warning."""
    if given is None:
        warnings.warn(
            f"{name} uses align_corners=False by default; say which you mean.", stacklevel=3
        )
    return bool(given)


GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """The images `input` at the places of `grid`.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, H', W', 2) or (N, D', H', W', 3), coordinates x, y(, z) from -1 to 1.
        mode: "bilinear", "nearest" or "bicubic" (4-d inputs).
        padding_mode: what lies outside: "zeros", "border" or "reflection".
        align_corners: -1 and 1 are the middles of the outermost pixels, not their edges.
    """
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    align_corners = _align_corners("grid_sample", align_corners)
    return ops.grid_sampler(
        input,
        grid,
        GRID_SAMPLE_INTERPOLATION_MODES[mode],
        GRID_SAMPLE_PADDING_MODES[padding_mode],
        align_corners,
    )


def affine_grid(theta, size, align_corners=None):
    """The grid for `grid_sample` that affine maps give.

    Args:
        theta: (N, 2, 3) or (N, 3, 4).
        size: that of the wanted image, (N, C, H, W) or (N, C, D, H, W).
    """
    align_corners = _align_corners("affine_grid", align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = [int(n) for n in size]
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    dims = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{size}. Got {tuple(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return ops.affine_grid_generator(theta, size, align_corners)
