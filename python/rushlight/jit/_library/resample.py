"""Resizing of images and windows as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def fold(
    input: Tensor,
    output_size: BroadcastingList2[int],
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch.col2im(input, output_size, kernel_size, dilation, padding, stride)


def unfold(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch.im2col(input, kernel_size, dilation, padding, stride)


def _sizes(input: Tensor, scales: List[float]) -> List[int]:
    if len(scales) != input.dim() - 2:
        raise ValueError(
            f"Input has {input.dim() - 2} spatial dimensions, but scale_factor has {len(scales)}"
        )
    return [int(math_floor(float(input.size(i + 2)) * scales[i])) for i in range(len(scales))]


def math_floor(x: float) -> int:
    return torch.floor(x)


def _resized(
    input: Tensor,
    size: Optional[List[int]],
    scales: Optional[List[float]],
    mode: str,
    corners: bool,
    antialias: bool,
) -> Tensor:
    dims = input.dim()
    if mode == "nearest":
        if dims == 3:
            return torch.upsample_nearest1d(input, size, scales)
        if dims == 4:
            return torch.upsample_nearest2d(input, size, scales)
        if dims == 5:
            return torch.upsample_nearest3d(input, size, scales)
    if mode == "nearest-exact":
        if dims == 3:
            return torch._upsample_nearest_exact1d(input, size, scales)
        if dims == 4:
            return torch._upsample_nearest_exact2d(input, size, scales)
        if dims == 5:
            return torch._upsample_nearest_exact3d(input, size, scales)
    if dims == 3 and mode == "linear":
        return torch.upsample_linear1d(input, size, corners, scales)
    if dims == 4 and mode == "bilinear":
        if antialias:
            return torch._upsample_bilinear2d_aa(input, size, corners, scales)
        return torch.upsample_bilinear2d(input, size, corners, scales)
    if dims == 5 and mode == "trilinear":
        return torch.upsample_trilinear3d(input, size, corners, scales)
    if dims == 4 and mode == "bicubic":
        if antialias:
            return torch._upsample_bicubic2d_aa(input, size, corners, scales)
        return torch.upsample_bicubic2d(input, size, corners, scales)
    raise NotImplementedError(f"interpolate: {dims}D input cannot be resized by mode '{mode}'")


def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    if mode == "nearest" or mode == "area" or mode == "nearest-exact":
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the linear modes")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if antialias and not ((mode == "bilinear" or mode == "bicubic") and input.dim() == 4):
        raise ValueError("Anti-alias option is restricted to bilinear and bicubic modes of images")
    wanted = size
    scales = scale_factor
    recompute = recompute_scale_factor is not None and recompute_scale_factor
    if recompute and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scale_factor is not None and (recompute or mode == "area"):
        wanted = _sizes(input, scale_factor)
        scales = None
    if mode == "area":
        assert wanted is not None
        if input.dim() == 3:
            return torch.adaptive_avg_pool1d(input, wanted)
        if input.dim() == 4:
            return torch.adaptive_avg_pool2d(input, wanted)
        return torch.adaptive_avg_pool3d(input, wanted)
    corners = align_corners is not None and align_corners
    return _resized(input, wanted, scales, mode, corners, antialias)


def interpolate__1(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    sizes = annotate(Optional[List[int]], None)
    if size is not None:
        sizes = [size for _ in range(input.dim() - 2)]
    return interpolate(
        input, sizes, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    )


def interpolate__2(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    scales = annotate(Optional[List[float]], None)
    if scale_factor is not None:
        scales = [scale_factor for _ in range(input.dim() - 2)]
    return interpolate(input, size, scales, mode, align_corners, recompute_scale_factor, antialias)


def interpolate__3(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    scales = annotate(Optional[List[float]], None)
    if scale_factor is not None:
        scales = [scale_factor for _ in range(input.dim() - 2)]
    return interpolate__1(
        input, size, scales, mode, align_corners, recompute_scale_factor, antialias
    )


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Optional[bool] = None,
) -> Tensor:
    number = 0
    if mode == "nearest":
        number = 1
    elif mode == "bicubic":
        number = 2
    elif mode != "bilinear":
        raise ValueError(f"grid_sample(): there is no mode '{mode}'")
    edges = 0
    if padding_mode == "border":
        edges = 1
    elif padding_mode == "reflection":
        edges = 2
    elif padding_mode != "zeros":
        raise ValueError(f"grid_sample(): there is no padding_mode '{padding_mode}'")
    corners = align_corners is not None and align_corners
    return torch.grid_sampler(input, grid, number, edges, corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    corners = align_corners is not None and align_corners
    return torch.affine_grid_generator(theta, size, corners)
