"""Transforms of values and kinds: dtypes, blur, noise, compression, frames.

Functions with the name of a kind are kernels: they take a plain tensor, those of images also a
picture of Pillow.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
from PIL.Image import Image as Picture

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn
from rushlight.vision import tv_tensors
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

from ... import _tensors
from ... import functional as F
from ._registry import IMAGES, Input, Still, call, kernel, rename_input

to_pil_image = F.to_pil_image
pil_to_tensor = F.pil_to_tensor


# ---- values ----


def normalize(
    inpt: Input, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Input:
    """Normalise channels: (image - mean) / std, with a mean and a deviation for each; tensors
    only.

    Args:
        inpt: an image or a video, a tensor of floating-point numbers.
        mean: of each channel.
        std: of each channel.
        inplace: whether the input itself is changed.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.normalize(torch.tensor([[[0.0, 0.5, 1.0]]]), mean=[0.5], std=[0.5])
        tensor([[[-1.,  0.,  1.]]])
    """
    return call(normalize, inpt, mean=mean, std=std, inplace=inplace)


@kernel(normalize, Tensor, Image, Video)
def normalize_image(
    image: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    """`normalize` of an image."""
    return F.normalize(image, mean, std, inplace)


normalize_video = rename_input(normalize_image, "video")


def gaussian_blur(inpt: Input, kernel_size: Any, sigma: Any = None) -> Input:
    """Blur the image with a Gaussian; its edges are mirrored.

    Args:
        inpt: an image or a video.
        kernel_size: odd width, or (width, height), in pixels.
        sigma: deviation in pixels, one or (x, y); 0.15 times the kernel's size + 0.35 if None.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.gaussian_blur(torch.tensor([[[4.0, 8.0, 6.0]]]), [3, 1], 1.0)
        tensor([[[6.1925, 6.3556, 7.0963]]])
    """
    return call(gaussian_blur, inpt, kernel_size=kernel_size, sigma=sigma)


@kernel(gaussian_blur, *IMAGES)
def gaussian_blur_image(image: Still, kernel_size: Any, sigma: Any = None) -> Still:
    """`gaussian_blur` of an image."""
    return F.gaussian_blur(image, kernel_size, sigma)


gaussian_blur_video = rename_input(gaussian_blur_image, "video")


def gaussian_noise(inpt: Input, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Input:
    """Add normal noise to the image.

    Args:
        inpt: an image or a video, of floating-point numbers or bytes; no picture of Pillow.
        mean: of the noise, where white is 1.
        sigma: its standard deviation.
        clip: whether numbers beyond black and white become these.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> noisy = F.gaussian_noise(torch.full((1, 64, 64), 0.5), sigma=0.1)
        >>> 0.09 < noisy.std().item() < 0.11
        True
    """
    return call(gaussian_noise, inpt, mean=mean, sigma=sigma, clip=clip)


@kernel(gaussian_noise, Tensor, Image, Video)
def gaussian_noise_image(
    image: Tensor, mean: float = 0.0, sigma: float = 0.1, clip: bool = True
) -> Tensor:
    """`gaussian_noise` of an image."""
    if sigma < 0:
        raise ValueError(f"sigma shouldn't be negative. Got {sigma}")
    if image.is_floating_point():
        out = image + (mean + rushlight.randn_like(image) * sigma)
        return out.clamp(0, 1) if clip else out
    if image.dtype != rushlight.uint8:
        raise ValueError(
            f"Input tensor is expected to be uint8 or floating point, not {image.dtype}"
        )
    drawn = rushlight.randn_like(image, dtype=rushlight.float32) * (sigma * 255)
    out = image + (mean * 255 + drawn).to(rushlight.int16)
    return (out.clamp(0, 255) if clip else out).to(rushlight.uint8)


gaussian_noise_video = rename_input(gaussian_noise_image, "video")


@kernel(gaussian_noise, Picture)
def _no_noise(image: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Any:
    del image, mean, sigma, clip
    raise ValueError("Gaussian Noise is not implemented for PIL images.")


def to_dtype(inpt: Input, dtype: Any = rushlight.float32, scale: bool = False) -> Input:
    """Convert the input to another dtype; with `scale`, white of images stays white.

    Args:
        inpt: an input of any kind.
        dtype: the new dtype.
        scale: whether values of images and videos are scaled, so that white stays white.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.to_dtype(torch.tensor([[[0, 255]]], dtype=torch.uint8), torch.float32, scale=True)
        tensor([[[0., 1.]]])
    """
    return call(to_dtype, inpt, dtype=dtype, scale=scale)


@kernel(to_dtype, Tensor, Image, Video)
def to_dtype_image(image: Tensor, dtype: Any = rushlight.float32, scale: bool = False) -> Tensor:
    """`to_dtype` of an image; TypeError for bools that are to be scaled to integers."""
    if scale and not dtype.is_floating_point:
        _tensors.want_integers(image.dtype)
    return F.convert_image_dtype(image, dtype) if scale else image.to(dtype)


to_dtype_video = rename_input(to_dtype_image, "video")


@kernel(to_dtype, BoundingBoxes, KeyPoints, Mask)
def _to_dtype(inpt: Tensor, dtype: Any = rushlight.float32) -> Tensor:
    return inpt.to(dtype)


def convert_image_dtype(image: Tensor, dtype: Any = rushlight.float32) -> Tensor:
    """Run `to_dtype` with `scale` on a plain tensor.

    Args:
        image: a plain tensor.
        dtype: the new dtype.

    For an example see `to_dtype`.
    """
    return to_dtype_image(image, dtype, scale=True)


# ---- parts and compression ----


def erase(inpt: Input, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Input:
    """Replace the region whose top left corner is (i, j) by v.

    Args:
        inpt: an image or a video.
        i: the row of the region's top left corner.
        j: its column.
        h: the region's height.
        w: its width.
        v: the new values, of a shape that broadcasts to that of the region.
        inplace: whether the input itself is changed; not of pictures of Pillow.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.erase(torch.ones(1, 2, 3), 0, 1, 1, 2, torch.zeros(1, 1, 1))
        tensor([[[1., 0., 0.],
                 [1., 1., 1.]]])
    """
    return call(erase, inpt, i=i, j=j, h=h, w=w, v=v, inplace=inplace)


@kernel(erase, *IMAGES)
def erase_image(
    image: Still, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False
) -> Still:
    """`erase` of an image."""
    if isinstance(image, Tensor):
        return F.erase(image, i, j, h, w, v, inplace)
    return F.to_pil_image(F.erase(F.pil_to_tensor(image), i, j, h, w, v, True), image.mode)


erase_video = rename_input(erase_image, "video")


def jpeg(image: Input, quality: int) -> Input:
    """Compress the image as JPEG with a quality of 1 to 100, and decode it; tensors are bytes.

    Args:
        image: an image or a video of bytes.
        quality: 1 to 100.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.jpeg(torch.zeros(3, 16, 16, dtype=torch.uint8), quality=50).shape
        torch.Size([3, 16, 16])
    """
    return call(jpeg, image, quality=quality)


@kernel(jpeg, *IMAGES)
def jpeg_image(image: Still, quality: int) -> Still:
    """`jpeg` of an image."""
    if not isinstance(image, Tensor):
        file = io.BytesIO()
        image.save(file, format="JPEG", quality=quality)
        return PIL.Image.open(file).copy()
    from rushlight.vision.io import decode_jpeg, encode_jpeg

    if image.numel() == 0:
        return image.clone()
    each = image.reshape(-1, *image.shape[-3:])
    made = [decode_jpeg(encode_jpeg(one, quality=quality)) for one in each]
    return rushlight.stack(made).reshape(image.shape)


jpeg_video = rename_input(jpeg_image, "video")


# ---- frames ----


def uniform_temporal_subsample(inpt: Input, num_samples: int) -> Input:
    """Choose frames of a video at equal distances.

    Args:
        inpt: a video, (..., T, C, H, W).
        num_samples: how many frames.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.uniform_temporal_subsample(torch.zeros(16, 3, 8, 8), 4).shape
        torch.Size([4, 3, 8, 8])
    """
    return call(uniform_temporal_subsample, inpt, num_samples=num_samples)


@kernel(uniform_temporal_subsample, Tensor, Video)
def uniform_temporal_subsample_video(video: Tensor, num_samples: int) -> Tensor:
    """`uniform_temporal_subsample` of a tensor of shape (..., T, C, H, W)."""
    last = video.shape[-4] - 1
    at = rushlight.linspace(0, last, num_samples, device=video.device).long()
    return video.index_select(-4, at)


# ---- kinds ----


def to_image(inpt: Any) -> Image:
    """Convert a tensor, an array (H, W, C) or (H, W), or a Pillow image to an Image; TypeError for
    anything else.

    Args:
        inpt: what becomes an image; tensors are (..., C, H, W).

    Example:
        >>> import numpy as np
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.to_image(np.zeros((32, 64, 3), dtype=np.uint8)).shape
        torch.Size([3, 32, 64])
    """
    if isinstance(inpt, Tensor | Picture):
        return tv_tensors.Image(inpt)
    if not isinstance(inpt, np.ndarray):
        raise TypeError(f"Input can either be a tensor, an array or a picture, not {type(inpt)}")
    rows = rushlight.from_numpy(np.atleast_3d(inpt))
    return tv_tensors.Image(rows.permute(2, 0, 1).contiguous())


def to_tensor(inpt: Any) -> Tensor:
    """Deprecated: run `to_image` and `to_dtype` with `scale`; warns.

    Args:
        inpt: a picture of Pillow, or an array (H, W, C).

    Example:
        >>> import numpy as np
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.to_tensor(np.full((1, 2, 1), 255, dtype=np.uint8))
        tensor([[[1., 1.]]])
    """
    warn(
        "The function `to_tensor(...)` is deprecated: to_image(x), and then "
        "to_dtype(x, torch.float32, scale=True), do what it does",
    )
    return F.to_tensor(inpt)


def get_image_size(inpt: Any) -> list[int]:
    """Deprecated: the width and height; warns that `get_size` gives (height, width).

    Args:
        inpt: an image or a video.

    For an example see `get_size`.
    """
    warn(
        "The function `get_image_size(...)` is deprecated: get_size(x) says the height first and "
        "then the width",
    )
    return F.get_image_size(inpt)
