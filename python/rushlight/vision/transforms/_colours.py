"""Transforms of colours and sharpness as functions, which `functional` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import rushlight
from rushlight import Tensor

from . import _tensors
from ._conversions import is_picture, pil_to_tensor, to_pil_image
from ._kinds import check_tensor, place

_Picture = TypeVar("_Picture")  # of PIL, or a tensor: what comes is of the same kind


def adjust_brightness(img: _Picture, brightness_factor: float) -> _Picture:
    """Change the brightness: 0 gives black, 1 the image, 2 twice its brightness.

    Args:
        img: picture or tensor.
        brightness_factor: the factor, not negative.

    Example:
        >>> torch.vision.transforms.functional.adjust_brightness(torch.tensor([[[0.2, 0.6]]]), 2)
        tensor([[[0.4000, 1.0000]]])
    """
    return place(img).adjust_brightness(img, brightness_factor)


def adjust_contrast(img: _Picture, contrast_factor: float) -> _Picture:
    """Change the contrast: 0 gives the mean grey, 1 the image.

    Args:
        img: picture or tensor.
        contrast_factor: the factor, not negative.

    Example:
        >>> torch.vision.transforms.functional.adjust_contrast(torch.tensor([[[0.2, 0.6]]]), 0.5)
        tensor([[[0.3000, 0.5000]]])
    """
    return place(img).adjust_contrast(img, contrast_factor)


def adjust_saturation(img: _Picture, saturation_factor: float) -> _Picture:
    """Change the saturation: 0 gives grey, 1 the image.

    Args:
        img: picture or tensor of three channels.
        saturation_factor: the factor, not negative.

    Example:
        >>> red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
        >>> torch.vision.transforms.functional.adjust_saturation(red, 0).flatten()
        tensor([0.2989, 0.2989, 0.2989])
    """
    return place(img).adjust_saturation(img, saturation_factor)


def adjust_hue(img: _Picture, hue_factor: float) -> _Picture:
    """Rotate the hue by a share of the circle from -0.5 to 0.5 (else ValueError).

    Args:
        img: picture or tensor of three channels.
        hue_factor: the share of the circle.

    Example:
        >>> red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
        >>> torch.vision.transforms.functional.adjust_hue(red, 0.5).flatten()
        tensor([0., 1., 1.])
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return place(img).adjust_hue(img, hue_factor)


def adjust_gamma(img: _Picture, gamma: float, gain: float = 1) -> _Picture:
    """Gamma correction: gain * img ** gamma, with white at 1; ValueError for a negative gamma.

    Args:
        img: picture or tensor.
        gamma: the power: more than 1 makes shadows darker.
        gain: the factor.

    Example:
        >>> torch.vision.transforms.functional.adjust_gamma(torch.tensor([[[0.5, 1.0]]]), 2)
        tensor([[[0.2500, 1.0000]]])
    """
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    check_tensor(img, _tensors.check_colours)
    return place(img).adjust_gamma(img, gamma, gain)


def adjust_sharpness(img: _Picture, sharpness_factor: float) -> _Picture:
    """Change the sharpness: 0 gives a blurred image, 1 the image, 2 twice its sharpness.

    Args:
        img: picture or tensor.
        sharpness_factor: the factor, not negative.

    Example:
        >>> image = torch.zeros(1, 3, 3)
        >>> image[0, 1, 1] = 1
        >>> torch.vision.transforms.functional.adjust_sharpness(image, 0)[0, 1]
        tensor([0.0000, 0.3846, 0.0000])
    """
    return place(img).adjust_sharpness(img, sharpness_factor)


def _grey(img: Any, num_output_channels: int) -> Any:
    if isinstance(img, Tensor):
        _tensors.check_planes(img)
        _tensors.check_colours(img)
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    if isinstance(img, Tensor) and img.shape[-3] == 1:  # stays a channel, as in torchvision
        return img.clone()
    return place(img).to_grayscale(img, num_output_channels)


def to_grayscale(img: _Picture, num_output_channels: int = 1) -> _Picture:
    """Convert a Pillow image to grey, with one channel or three equal ones; TypeError for a
    tensor.

    Args:
        img: a Pillow image.
        num_output_channels: 1 or 3.

    Example:
        >>> from PIL import Image
        >>> torch.vision.transforms.functional.to_grayscale(Image.new("RGB", (4, 4))).mode
        'L'
    """
    if not is_picture(img):
        raise TypeError("Input should be PIL Image")
    return _grey(img, num_output_channels)


def rgb_to_grayscale(img: _Picture, num_output_channels: int = 1) -> _Picture:
    """Convert to grey: 0.2989 red + 0.587 green + 0.114 blue, with one channel or three equal
    ones.

    Args:
        img: picture or tensor of three channels.
        num_output_channels: 1 or 3.

    Example:
        >>> red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
        >>> torch.vision.transforms.functional.rgb_to_grayscale(red)
        tensor([[[0.2989]]])
    """
    return _grey(img, num_output_channels)


def invert(img: _Picture) -> _Picture:
    """Invert the colours: white less the image.

    Args:
        img: picture or tensor.

    Example:
        >>> torch.vision.transforms.functional.invert(torch.tensor([[[0.25, 1.0]]]))
        tensor([[[0.7500, 0.0000]]])
    """
    check_tensor(img, _tensors.check_planes)
    check_tensor(img, _tensors.check_colours)
    return place(img).invert(img)


def posterize(img: _Picture, bits: int) -> _Picture:
    """Keep only the highest bits, 0 to 8, of bytes.

    Args:
        img: picture or tensor of bytes.
        bits: how many bits are kept.

    Example:
        >>> image = torch.tensor([[[100, 200]]], dtype=torch.uint8)
        >>> torch.vision.transforms.functional.posterize(image, 2)
        tensor([[[ 64, 192]]], dtype=torch.uint8)
    """
    if not 0 <= bits <= 8:
        raise ValueError(f"bits should be between 0 and 8, and is {bits}")
    check_tensor(img, _tensors.check_planes)
    check_tensor(img, _tensors.check_bytes)
    return place(img).posterize(img, bits)


def solarize(img: _Picture, threshold: float) -> _Picture:
    """Invert the pixels at or above the threshold.

    Args:
        img: picture or tensor.
        threshold: the least value that is inverted.

    Example:
        >>> torch.vision.transforms.functional.solarize(torch.tensor([[[0.2, 0.9]]]), 0.5)
        tensor([[[0.2000, 0.1000]]])
    """
    check_tensor(img, _tensors.check_planes)
    check_tensor(img, _tensors.check_colours)
    return place(img).solarize(img, threshold)


def autocontrast(img: _Picture) -> _Picture:
    """Stretch each channel from black to white.

    Args:
        img: picture or tensor.

    Example:
        >>> torch.vision.transforms.functional.autocontrast(torch.tensor([[[0.2, 0.4, 0.6]]]))
        tensor([[[0.0000, 0.5000, 1.0000]]])
    """
    check_tensor(img, _tensors.check_planes)
    if isinstance(img, Tensor) and img.dtype == rushlight.bool:
        _tensors.check_colours(img)
        raise RuntimeError("autocontrast: bools have no differences; convert the image first")
    return place(img).autocontrast(img)


def equalize(img: _Picture) -> _Picture:
    """Equalise the histogram of each channel of bytes.

    Args:
        img: picture or tensor of bytes.

    Example:
        >>> image = torch.tensor([[[100, 101, 102, 103]]], dtype=torch.uint8)
        >>> torch.vision.transforms.functional.equalize(image)
        tensor([[[100, 101, 102, 103]]], dtype=torch.uint8)
    """
    check_tensor(img, _tensors.check_bytes)
    return place(img).equalize(img)


def gaussian_blur(
    img: Any, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None
) -> Any:
    """Blur an image with a Gaussian; its edges are mirrored.

    Args:
        img: picture or tensor.
        kernel_size: odd width, or (width, height), in pixels.
        sigma: deviation in pixels, one or (x, y); 0.15 times the kernel's size + 0.35 if None.

    Example:
        >>> image = torch.zeros(1, 3, 3)
        >>> image[0, 1, 1] = 1
        >>> torch.vision.transforms.functional.gaussian_blur(image, 3).shape
        torch.Size([1, 3, 3])
    """
    if not isinstance(kernel_size, int | list | tuple):
        raise TypeError(f"kernel_size should be an int or two of them, not {kernel_size!r}")
    kernel = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(kernel) != 2:
        raise ValueError(f"kernel_size should be one length or (x, y), not {len(kernel)} of them")
    if any(k % 2 == 0 or k < 0 for k in kernel):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {kernel_size}")
    if sigma is not None and not isinstance(sigma, int | float | list | tuple):
        raise TypeError(f"sigma should be a float or two of them, not {sigma!r}")
    if sigma is None:
        sigmas = [k * 0.15 + 0.35 for k in kernel]
    else:
        sigmas = list(sigma) if isinstance(sigma, list | tuple) else [float(sigma)]
        sigmas = sigmas * (2 if len(sigmas) == 1 else 1)
    if len(sigmas) != 2:
        raise ValueError(f"sigma should be one number or (x, y), not {len(sigmas)} of them")
    if any(s <= 0.0 for s in sigmas):
        raise ValueError(f"sigma should have positive values. Got {sigma}")
    image = img if isinstance(img, Tensor) else pil_to_tensor(_expect_picture(img))
    out = _tensors.gaussian_blur(image, kernel, sigmas)
    return out if isinstance(img, Tensor) else to_pil_image(out, mode=img.mode)


def _expect_picture(img: Any) -> Any:
    if not is_picture(img):
        raise TypeError(f"img should be a tensor or a picture of PIL, not {type(img).__name__}")
    return img
