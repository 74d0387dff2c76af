"""What transforms do to tensors of shape (..., C, H, W), of floating-point or integer dtype.

Each function has the name and the meaning of the one in functional.py, which has checked the
arguments. Integers are
computed as float32 and rounded where values are mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight
import rushlight.nn.functional as F
from rushlight import Tensor

from ._modes import InterpolationMode

_LARGEST = {
    rushlight.uint8: 255,
    rushlight.int8: 127,
    rushlight.int16: 32767,
    rushlight.uint16: 65535,
    rushlight.int32: 2147483647,
    rushlight.int64: 9223372036854775807,
}
_FLOATS = (rushlight.float32, rushlight.float64)


def largest(dtype: Any) -> int:
    """The value of white: 1 for floating-point numbers, the largest one for integers."""
    return _LARGEST.get(dtype, 1)


def want_integers(dtype: Any) -> None:
    """TypeError for bools."""
    if dtype == rushlight.bool:
        raise TypeError(f"Number of value bits: {dtype} has none, only integer dtypes do")


def get_dimensions(img: Tensor) -> list[int]:
    check(img)
    return [1 if img.ndim == 2 else img.shape[-3], img.shape[-2], img.shape[-1]]


def check(img: Tensor) -> None:
    if img.ndim < 2:
        raise TypeError("Tensor is not a torch image.")


def check_colours(img: Tensor) -> None:
    """TypeError unless it is grey or red, green and blue."""
    channels = get_dimensions(img)[0]
    if channels not in (1, 3):
        raise TypeError(f"permitted channel values are [1, 3]: this image has {channels} channels")


def check_planes(img: Tensor) -> None:
    """TypeError unless it has a dimension of channels."""
    if img.ndim < 3:
        raise TypeError(f"image tensor should have at least 3 dimensions (C, H, W), not {img.ndim}")


def check_bytes(img: Tensor) -> None:
    """TypeError unless it is such an image of bytes."""
    check(img)
    if img.dtype != rushlight.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    check_colours(img)


def _check_factor(name: str, factor: float) -> None:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def _as_batch(
    img: Tensor, compute: Callable[[Tensor], Tensor], dtypes: Sequence[Any] = _FLOATS
) -> Tensor:
    """compute(images of shape (N, C, H, W) and one of the dtypes), in the shape and dtype of
    img.
    """
    lead = img.shape[:-3]
    batch = img.reshape(-1, *img.shape[-3:]) if img.ndim > 3 else img.view(1, *_three(img))
    cast = img.dtype not in dtypes
    out = compute(batch.to(dtypes[0]) if cast else batch)
    if cast:
        if not img.dtype.is_floating_point and img.dtype != rushlight.bool:
            out = out.round()
        out = out.to(img.dtype)
    return out.reshape(*lead, *(out.shape[-2:] if img.ndim == 2 else out.shape[-3:]))


def _three(img: Tensor) -> Sequence[int]:
    return img.shape if img.ndim == 3 else (1, *img.shape)


# ---- sizes and places ----


def resize(
    img: Tensor,
    size: Sequence[int],
    interpolation: InterpolationMode,
    antialias: Any,
    whole: bool = False,
) -> Tensor:
    """`whole`: bytes are mixed by whole numbers, else as float32 and rounded."""
    check(img)
    smooth = interpolation in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC)
    exact = (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT)
    if not smooth and interpolation not in exact:
        raise ValueError("This Interpolation mode is unsupported with Tensor input")

    def compute(batch: Tensor) -> Tensor:
        out = F.interpolate(
            batch,
            size=list(size),
            mode=interpolation.value,
            align_corners=False if smooth else None,
            antialias=bool(antialias) and smooth,
        )
        if interpolation is InterpolationMode.BICUBIC and img.dtype == rushlight.uint8:
            out = out.clamp(0, 255)
        return out

    return _as_batch(img, compute, (*_FLOATS, rushlight.uint8) if whole else _FLOATS)


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    check(img)
    h, w = img.shape[-2:]
    bottom, right = top + height, left + width
    if left >= 0 and top >= 0 and right <= w and bottom <= h:
        return img[..., top:bottom, left:right]  # of negative sizes, what a slice makes of them
    part = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    sides = [
        max(min(right, 0) - left, 0),
        max(min(bottom, 0) - top, 0),
        max(right - max(w, left), 0),
        max(bottom - max(h, top), 0),
    ]
    return pad(part, sides, 0, "constant")


def hflip(img: Tensor) -> Tensor:
    check(img)
    return img.flip(-1)


def vflip(img: Tensor) -> Tensor:
    check(img)
    return img.flip(-2)


def _mirror_indices(n: int, before: int, after: int, device: Any) -> Tensor:
    """Indices of n pixels and of as many more on both sides, mirrored with the edge.

    IndexError for more than there are.
    """
    if max(before, after) > n or n + before + after < 0:
        raise IndexError(f"{n} pixels cannot be mirrored to {before} and {after} more")
    at = rushlight.arange(-before, n + after, device=device) % (2 * n)
    return rushlight.where(at < n, at, 2 * n - 1 - at)


def pad(img: Tensor, sides: Sequence[int], fill: Any, mode: str) -> Tensor:
    check(img)
    left, top, right, bottom = sides
    if mode == "symmetric":
        h, w = img.shape[-2:]
        rows = _mirror_indices(h, top, bottom, img.device)
        return img[..., rows[:, None], _mirror_indices(w, left, right, img.device)[None]]
    if isinstance(fill, list | tuple) and len(fill) == 1:
        fill = fill[0]
    around = [left, right, top, bottom]
    if isinstance(fill, list | tuple):
        if mode != "constant":
            raise ValueError(f"Padding mode '{mode}' is not supported if fill is not scalar")
        colour = rushlight.tensor(fill, device=img.device).to(img.dtype).view(-1, 1, 1)
        outside = F.pad(rushlight.zeros(img.shape[-2:], device=img.device), around, value=1.0)
        return rushlight.where(outside.bool(), colour, F.pad(img, around))
    if mode == "constant":
        return F.pad(img, around, value=0.0 if fill is None else float(fill))
    way = "replicate" if mode == "edge" else mode
    return _as_batch(img, lambda batch: F.pad(batch, around, mode=way))


_BETWEEN = (InterpolationMode.NEAREST, InterpolationMode.BILINEAR)


def _check_grid_mode(mode: InterpolationMode, permitted: Sequence[InterpolationMode]) -> None:
    if mode not in permitted:
        raise ValueError(f"Interpolation mode '{mode.value}' is unsupported with Tensor input")


def _sample(img: Tensor, grid: Tensor, interpolation: InterpolationMode, fill: Any) -> Tensor:
    """The image at the positions of the grid, (1, H, W, 2) in -1 … 1; `fill` outside of it."""
    channels = get_dimensions(img)[0]
    if isinstance(fill, list | tuple) and len(fill) not in (1, channels):
        raise ValueError(
            f"number of elements in 'fill' cannot broadcast to the image: {len(fill)} of them for "
            f"{channels} channels"
        )

    nearest = interpolation is InterpolationMode.NEAREST
    one = 0.0 if fill is None or isinstance(fill, list | tuple) else float(fill)
    values = fill if isinstance(fill, list | tuple) else [one]
    # Outside the nearest pixel is 0 as it is.
    seen = fill is None or (nearest and not any(values))

    if img.numel() == 0:
        return img.reshape((*img.shape[:-2], *grid.shape[1:3]))

    def compute(batch: Tensor) -> Tensor:
        if not seen:  # which part of each pixel comes from the image
            n, _, h, w = batch.shape
            batch = rushlight.cat((batch, batch.new_ones(n, 1, h, w)), 1)
        places = grid.expand(batch.shape[0], -1, -1, -1)
        out = F.grid_sample(
            batch, places, mode=interpolation.value, padding_mode="zeros", align_corners=False
        )
        if seen:
            return out
        out, share = out[:, :-1], out[:, -1:]
        outside = out.new_tensor(values).view(1, -1, 1, 1)
        if nearest:
            return rushlight.where(share < 0.5, outside, out)
        return out * share + (1.0 - share) * outside

    return _as_batch(img, compute, (grid.dtype,))


def _compute_dtype(img: Tensor) -> Any:
    return img.dtype if img.is_floating_point() else rushlight.float32


def _centres(n: int, first: float, dtype: Any, device: Any) -> Tensor:
    return rushlight.linspace(first, first + n - 1, n, dtype=dtype, device=device)


def _planes(
    rows: Tensor, width: int, height: int, x: float, y: float, sizes: Sequence[float]
) -> Tensor:
    """(a x + b y + c) / size for each row (a, b, c), at every pixel's centre, the first of which is
    (x, y): (1, height, width, rows).
    """
    dtype, device = rows.dtype, rows.device
    rows = rows / rushlight.tensor(sizes, dtype=dtype, device=device).unsqueeze(-1)
    grid = rushlight.empty(1, height, width, len(rows), dtype=dtype, device=device)
    across = _centres(width, x, dtype, device)
    down = _centres(height, y, dtype, device).unsqueeze(-1)
    for i, (a, b, c) in enumerate(rows.tolist()):
        # Rounded in this order, as in a product of matrices: places between two pixels are common.
        grid[0, ..., i] = (across * a + down * b).add_(c)
    return grid


def _affine_grid(img: Tensor, matrix: Sequence[float], width: int, height: int) -> Tensor:
    h, w = img.shape[-2:]
    rows = rushlight.tensor(matrix, dtype=_compute_dtype(img), device=img.device).view(2, 3)
    first = (0.5 - width * 0.5, 0.5 - height * 0.5)
    return _planes(rows, width, height, *first, (0.5 * w, 0.5 * h))


def affine(img: Tensor, matrix: Sequence[float], interpolation: Any, fill: Any) -> Tensor:
    check(img)
    _check_grid_mode(interpolation, _BETWEEN)
    h, w = img.shape[-2:]
    return _sample(img, _affine_grid(img, matrix, w, h), interpolation, fill)


def expanded_size(matrix: Sequence[float], width: int, height: int) -> tuple[int, int]:
    """The width and height that hold all of a turned image."""
    x, y = 0.5 * width, 0.5 * height
    corners = rushlight.tensor([[-x, -y, 1.0], [-x, y, 1.0], [x, y, 1.0], [x, -y, 1.0]])
    turned = corners @ rushlight.tensor(matrix).view(2, 3).T
    half = rushlight.tensor([x, y])
    low, high = turned.amin(0) + half, turned.amax(0) + half
    tolerance = 1e-4  # so that rounding adds no pixel
    high = ((high / tolerance).trunc() * tolerance).ceil()
    low = ((low / tolerance).trunc() * tolerance).floor()
    size = (high - low).tolist()
    return int(size[0]), int(size[1])


def rotate(
    img: Tensor, matrix: Sequence[float], interpolation: Any, expand: bool, fill: Any
) -> Tensor:
    check(img)
    _check_grid_mode(interpolation, _BETWEEN)
    h, w = img.shape[-2:]
    width, height = expanded_size(matrix, w, h) if expand else (w, h)
    return _sample(img, _affine_grid(img, matrix, width, height), interpolation, fill)


def perspective(
    img: Tensor, coefficients: Sequence[float], interpolation: Any, fill: Any
) -> Tensor:
    check(img)
    _check_grid_mode(interpolation, _BETWEEN)
    h, w = img.shape[-2:]
    numbers = [*coefficients, 1.0]
    rows = rushlight.tensor(numbers, dtype=_compute_dtype(img), device=img.device).view(3, 3)
    over = _planes(rows[:2], w, h, 0.5, 0.5, (0.5 * w, 0.5 * h))
    under = _planes(rows[2:], w, h, 0.5, 0.5, (1.0,))
    return _sample(img, over.div_(under).sub_(1.0), interpolation, fill)


def identity_grid(h: int, w: int, dtype: Any, device: Any) -> Tensor:
    """The grid, (1, h, w, 2), of an image's own pixels."""
    y = rushlight.linspace((1 - h) / h, (h - 1) / h, h, dtype=dtype, device=device)
    x = rushlight.linspace((1 - w) / w, (w - 1) / w, w, dtype=dtype, device=device)
    return rushlight.stack(rushlight.meshgrid(x, y, indexing="xy"), -1).unsqueeze(0)


def elastic_transform(img: Tensor, displacement: Tensor, interpolation: Any, fill: Any) -> Tensor:
    check(img)
    _check_grid_mode(interpolation, (*_BETWEEN, InterpolationMode.BICUBIC))
    h, w = img.shape[-2:]
    grid = identity_grid(h, w, displacement.dtype, displacement.device)
    moved = (grid + displacement).to(img.device, _compute_dtype(img))
    return _sample(img, moved, interpolation, fill)


# ---- colours ----


def _blend(first: Tensor, second: Tensor, ratio: float) -> Tensor:
    mixed = first.mul(float(ratio)).add_(second, alpha=1.0 - ratio)
    return mixed.clamp_(0, largest(first.dtype)).to(first.dtype)


def to_grayscale(img: Tensor, channels: int) -> Tensor:
    check(img)
    check_colours(img)
    if img.shape[-3] == 3:
        red, green, blue = img.unbind(-3)
        grey = red.mul(0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114)
        img = grey.to(img.dtype).unsqueeze(-3)
    return img.expand(*img.shape[:-3], 3, *img.shape[-2:]) if channels == 3 else img.clone()


def adjust_brightness(img: Tensor, factor: float) -> Tensor:
    _check_factor("brightness_factor", factor)
    check_colours(img)
    return img.mul(float(factor)).clamp_(0, largest(img.dtype)).to(img.dtype)


def adjust_contrast(img: Tensor, factor: float) -> Tensor:
    _check_factor("contrast_factor", factor)
    check_colours(img)
    grey = to_grayscale(img, 1).to(_compute_dtype(img))
    return _blend(img, grey.mean((-3, -2, -1), keepdim=True), factor)


def adjust_saturation(img: Tensor, factor: float) -> Tensor:
    _check_factor("saturation_factor", factor)
    check_colours(img)
    grey = get_dimensions(img)[0] == 1
    return img if grey else _blend(img, to_grayscale(img, 1), factor)


def adjust_hue(img: Tensor, factor: float) -> Tensor:
    check_colours(img)
    if get_dimensions(img)[0] == 1 or img.numel() == 0:
        return img
    # As HSV: the value is the largest of red, green and blue, the hue six parts of a circle.
    red, green, blue = convert_image_dtype(img, rushlight.float32).unbind(-3)
    value = rushlight.maximum(rushlight.maximum(red, green), blue)
    lowest = rushlight.minimum(rushlight.minimum(red, green), blue)
    spread = value - lowest
    most_red, most_green = value == red, value == green
    away = rushlight.where(
        most_red, green - blue, rushlight.where(most_green, blue - red, red - green)
    )
    sector = rushlight.where(most_red, 0.0, rushlight.where(most_green, 2.0, 4.0))
    # Grey has no hue, and nothing is away from its value.
    hue = (away / spread.clamp(min=1e-30) + sector) / 6.0 + factor
    hue = (hue - hue.floor()) * 6.0
    # And back: each colour is a trapezoid of the hue, between the lowest number and the value.
    trapezoids = ((hue - 3.0).abs() - 1.0, 2.0 - (hue - 2.0).abs(), 2.0 - (hue - 4.0).abs())
    turned = [rushlight.addcmul(lowest, spread, shape.clamp_(0.0, 1.0)) for shape in trapezoids]
    return convert_image_dtype(rushlight.stack(turned, -3), img.dtype)


def adjust_gamma(img: Tensor, gamma: float, gain: float) -> Tensor:
    bright = img if img.is_floating_point() else convert_image_dtype(img, rushlight.float32)
    return convert_image_dtype((gain * bright**gamma).clamp(0, 1), img.dtype)


def invert(img: Tensor) -> Tensor:
    check(img)
    return largest(img.dtype) - img


def posterize(img: Tensor, bits: int) -> Tensor:
    if img.is_floating_point():
        levels = 1 << bits
        return img.mul(levels).floor_().clamp_(0, levels - 1).mul_(1.0 / levels)
    white = largest(img.dtype)
    dropped = white.bit_length() - bits
    return img if dropped <= 0 else img & (white & -int(2**dropped))


def solarize(img: Tensor, threshold: float) -> Tensor:
    check(img)
    if threshold > largest(img.dtype):
        raise TypeError(
            f"Threshold should be less than bound: {threshold} is no value of {img.dtype}"
        )
    return rushlight.where(img >= threshold, invert(img), img)


def adjust_sharpness(img: Tensor, factor: float) -> Tensor:
    _check_factor("sharpness_factor", factor)
    check_colours(img)
    if min(img.shape[-2:]) <= 2 or img.numel() == 0:
        return img

    def blur(batch: Tensor) -> Tensor:
        out = batch.clone()
        weights = batch.new_ones(3, 3)
        weights[1, 1] = 5.0
        out[..., 1:-1, 1:-1] = _convolve(batch, weights).div_(13.0)
        return out

    return _blend(img, _as_batch(img, blur), factor)


def autocontrast(img: Tensor) -> Tensor:
    check_colours(img)
    if img.numel() == 0:
        return img
    white = largest(img.dtype)
    dtype = _compute_dtype(img)
    low, high = (edge((-2, -1), keepdim=True).to(dtype) for edge in (img.amin, img.amax))
    flat = low == high
    scale = rushlight.where(flat, 1.0, white / (high - low))
    lifted = img.to(dtype) - rushlight.where(flat, 0.0, low)
    return (lifted * scale).clamp_(0, white).to(img.dtype)


def _equalize(channel: Tensor) -> Tensor:
    counts = rushlight.bincount(channel.reshape(-1), minlength=256)
    occupied = counts[counts != 0]
    step = int(occupied[:-1].sum()) // 255
    if step == 0:
        return channel
    table = (counts.cumsum(0) + step // 2) // step
    table = F.pad(table[:-1], [1, 0]).clamp(0, 255).to(rushlight.uint8)
    return table.gather(0, channel.reshape(-1).long()).view(channel.shape)


def equalize(img: Tensor) -> Tensor:
    check(img)
    if img.numel() == 0:
        return img
    planes = convert_image_dtype(img, rushlight.uint8).reshape(-1, *img.shape[-2:])
    out = rushlight.stack([_equalize(plane) for plane in planes]).reshape(img.shape)
    return convert_image_dtype(out, img.dtype)


# ---- values ----


def convert_image_dtype(img: Tensor, dtype: Any) -> Tensor:
    if img.dtype == dtype:
        return img
    if img.is_floating_point():
        if dtype.is_floating_point:
            return img.to(dtype)
        wide = dtype in (rushlight.int32, rushlight.int64)
        if (img.dtype == rushlight.float32 and wide) or (
            img.dtype == rushlight.float64 and dtype == rushlight.int64
        ):
            raise RuntimeError(
                f"The cast from {img.dtype} to {dtype} would lose values; convert by way of float64"
            )
        return img.mul(largest(dtype) + 1.0 - 1e-3).to(dtype)  # equal shares for all integers
    have, wanted = largest(img.dtype), largest(dtype)
    if dtype.is_floating_point:
        return img.to(dtype).div_(have)
    if have > wanted:
        return rushlight.div(img, (have + 1) // (wanted + 1), rounding_mode="floor").to(dtype)
    return img.to(dtype) * ((wanted + 1) // (have + 1))


def _convolve(img: Tensor, weights: Tensor) -> Tensor:
    """Each channel of (N, C, H, W) convolved with the same weights, (height, width)."""
    planes = img.reshape(-1, 1, *img.shape[-2:])
    out = F.conv2d(planes, weights.view(1, 1, *weights.shape))
    return out.view(*img.shape[:-2], *out.shape[-2:])


def _gaussian(n: int, sigma: float, dtype: Any, device: Any) -> Tensor:
    x = _centres(n, -(n - 1) * 0.5, dtype, device)
    weights = (-0.5 * (x / sigma) ** 2).exp()
    return weights / weights.sum()


def gaussian_blur(img: Tensor, kernel_size: Sequence[int], sigma: Sequence[float]) -> Tensor:
    check(img)
    if img.numel() == 0:
        return img
    kx, ky = kernel_size

    def compute(batch: Tensor) -> Tensor:
        out = F.pad(batch, [kx // 2, kx // 2, ky // 2, ky // 2], mode="reflect")
        across = _gaussian(kx, sigma[0], batch.dtype, batch.device)
        down = _gaussian(ky, sigma[1], batch.dtype, batch.device)
        # One direction after the other: kx + ky products a pixel instead of kx * ky.
        return _convolve(_convolve(out, across.view(1, -1)), down.view(-1, 1))

    return _as_batch(img, compute, (_compute_dtype(img),))
