"""Transforms of colours, for images and videos.

Functions with the name of a kind are kernels: they take a plain tensor or a picture of Pillow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL.Image import Image as Picture

from rushlight import Tensor
from rushlight.vision.tv_tensors import Image

from ... import _pictures, _tensors
from ... import functional as F
from ._registry import IMAGES, Input, Still, call, kernel, rename_input

_STILLS = (Tensor, Picture, Image)  # videos pass transforms between grey and colours as they are


def _check_levels(image: Any) -> None:
    """TypeError for images of bools."""
    if isinstance(image, Tensor):
        _tensors.want_integers(image.dtype)


def _place(image: Any) -> Any:
    if not isinstance(image, Tensor | Picture):
        raise TypeError(f"expected a tensor or a picture, but got {type(image)}")
    return _tensors if isinstance(image, Tensor) else _pictures


def rgb_to_grayscale(inpt: Input, num_output_channels: int = 1) -> Input:
    """Convert to grey: 0.2989 red + 0.587 green + 0.114 blue, with one channel or three equal
    ones.

    Args:
        inpt: an image, a tensor of 1 or 3 channels, or a picture of Pillow; videos stay as they
            are.
        num_output_channels: 1 or 3.

    Raises:
        ValueError: other numbers of channels.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.rgb_to_grayscale(torch.tensor([[[255]], [[0]], [[0]]], dtype=torch.uint8))
        tensor([[[76]]], dtype=torch.uint8)
    """
    return call(rgb_to_grayscale, inpt, num_output_channels=num_output_channels)


to_grayscale = rgb_to_grayscale


@kernel(rgb_to_grayscale, *_STILLS)
def rgb_to_grayscale_image(image: Still, num_output_channels: int = 1) -> Still:
    """`rgb_to_grayscale` of an image; ValueError unless it has one channel or three."""
    if isinstance(image, Tensor) and F.get_dimensions(image)[0] not in (1, 3):
        raise ValueError(f"Grey is made of 1 or 3 channels, but found {image.shape[-3]}")
    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels}.")
    return _place(image).to_grayscale(image, num_output_channels)


def grayscale_to_rgb(inpt: Input) -> Input:
    """Convert to three channels; images that have three stay as they are.

    Args:
        inpt: an image; videos stay as they are.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.grayscale_to_rgb(torch.zeros(1, 4, 4)).shape
        torch.Size([3, 4, 4])
    """
    return call(grayscale_to_rgb, inpt)


@kernel(grayscale_to_rgb, *_STILLS)
def grayscale_to_rgb_image(image: Still) -> Still:
    """`grayscale_to_rgb` of an image."""
    if not isinstance(image, Tensor):
        return image.convert("RGB")
    return image if image.shape[-3] >= 3 else rgb_to_grayscale_image(image, 3)


def adjust_brightness(inpt: Input, brightness_factor: float) -> Input:
    """Change the brightness: 0 gives black, 1 the image, 2 twice its brightness.

    Args:
        inpt: an image or a video.
        brightness_factor: a number, 0 or more.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.adjust_brightness(torch.tensor([[[0.0, 0.2, 0.6]]]), 2)
        tensor([[[0.0000, 0.4000, 1.0000]]])
    """
    return call(adjust_brightness, inpt, brightness_factor=brightness_factor)


@kernel(adjust_brightness, *IMAGES)
def adjust_brightness_image(image: Still, brightness_factor: float) -> Still:
    """`adjust_brightness` of an image."""
    return F.adjust_brightness(image, brightness_factor)


adjust_brightness_video = rename_input(adjust_brightness_image, "video")


def adjust_saturation(inpt: Input, saturation_factor: float) -> Input:
    """Change the saturation: 0 gives grey, 1 the image.

    Args:
        inpt: an image or a video.
        saturation_factor: a number, 0 or more.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> red = torch.tensor([[[255]], [[0]], [[0]]], dtype=torch.uint8)
        >>> F.adjust_saturation(red, 0).flatten()
        tensor([76, 76, 76], dtype=torch.uint8)
    """
    return call(adjust_saturation, inpt, saturation_factor=saturation_factor)


@kernel(adjust_saturation, *IMAGES)
def adjust_saturation_image(image: Still, saturation_factor: float) -> Still:
    """`adjust_saturation` of an image."""
    return F.adjust_saturation(image, saturation_factor)


adjust_saturation_video = rename_input(adjust_saturation_image, "video")


def adjust_contrast(inpt: Input, contrast_factor: float) -> Input:
    """Change the contrast: 0 gives the mean grey, 1 the image.

    Args:
        inpt: an image or a video.
        contrast_factor: a number, 0 or more.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.adjust_contrast(torch.tensor([[[0.0, 1.0]]]), 0.5)
        tensor([[[0.2500, 0.7500]]])
    """
    return call(adjust_contrast, inpt, contrast_factor=contrast_factor)


@kernel(adjust_contrast, *IMAGES)
def adjust_contrast_image(image: Still, contrast_factor: float) -> Still:
    """`adjust_contrast` of an image."""
    return F.adjust_contrast(image, contrast_factor)


adjust_contrast_video = rename_input(adjust_contrast_image, "video")


def adjust_sharpness(inpt: Input, sharpness_factor: float) -> Input:
    """Change the sharpness: 0 gives a blurred image, 1 the image, 2 twice its sharpness.

    Args:
        inpt: an image or a video.
        sharpness_factor: a number, 0 or more.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> image = torch.zeros(1, 3, 3)
        >>> image[0, 1, 1] = 1
        >>> F.adjust_sharpness(image, 0)[0, 1]
        tensor([0.0000, 0.3846, 0.0000])
    """
    return call(adjust_sharpness, inpt, sharpness_factor=sharpness_factor)


@kernel(adjust_sharpness, *IMAGES)
def adjust_sharpness_image(image: Still, sharpness_factor: float) -> Still:
    """`adjust_sharpness` of an image."""
    return F.adjust_sharpness(image, sharpness_factor)


adjust_sharpness_video = rename_input(adjust_sharpness_image, "video")


def adjust_hue(inpt: Input, hue_factor: float) -> Input:
    """Rotate the hue by a share of the circle from -0.5 to 0.5 (else ValueError).

    Args:
        inpt: an image or a video.
        hue_factor: from -0.5 to 0.5, where 1 were the whole circle.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> red = torch.tensor([[[1.0]], [[0.0]], [[0.0]]])
        >>> F.adjust_hue(red, 1 / 3).flatten()  # green
        tensor([0., 1., 0.])
    """
    return call(adjust_hue, inpt, hue_factor=hue_factor)


@kernel(adjust_hue, *IMAGES)
def adjust_hue_image(image: Still, hue_factor: float) -> Still:
    """`adjust_hue` of an image."""
    return F.adjust_hue(image, hue_factor)


adjust_hue_video = rename_input(adjust_hue_image, "video")


def adjust_gamma(inpt: Input, gamma: float, gain: float = 1) -> Input:
    """Gamma correction: gain * image ** gamma, with white at 1; ValueError for a negative gamma.

    Args:
        inpt: an image or a video.
        gamma: more than 1 makes dark pixels darker, less than 1 makes them lighter.
        gain: the factor in front.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.adjust_gamma(torch.tensor([[[0.0, 0.5, 1.0]]]), 2)
        tensor([[[0.0000, 0.2500, 1.0000]]])
    """
    return call(adjust_gamma, inpt, gamma=gamma, gain=gain)


@kernel(adjust_gamma, *IMAGES)
def adjust_gamma_image(image: Still, gamma: float, gain: float = 1) -> Still:
    """`adjust_gamma` of an image, with any number of channels."""
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    return _place(image).adjust_gamma(image, gamma, gain)


adjust_gamma_video = rename_input(adjust_gamma_image, "video")


def posterize(inpt: Input, bits: int) -> Input:
    """Keep only the highest bits, 0 to 8.

    Args:
        inpt: an image or a video.
        bits: how many of 8 bits stay.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.posterize(torch.tensor([[[1, 100, 255]]], dtype=torch.uint8), 1)
        tensor([[[  0,   0, 128]]], dtype=torch.uint8)
    """
    return call(posterize, inpt, bits=bits)


@kernel(posterize, *IMAGES)
def posterize_image(image: Still, bits: int) -> Still:
    """`posterize` of an image of any dtype."""
    if not isinstance(bits, int) or not 0 <= bits <= 8:
        raise TypeError(f"bits must be a positive integer of at most 8, or 0, not {bits}")
    _check_levels(image)
    return _place(image).posterize(image, bits)


posterize_video = rename_input(posterize_image, "video")


def solarize(inpt: Input, threshold: float) -> Input:
    """Invert the pixels at or above the threshold.

    Args:
        inpt: an image or a video.
        threshold: in the units of the image: 0 to 255 of bytes, 0 to 1 of floats.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.solarize(torch.tensor([[[1, 100, 255]]], dtype=torch.uint8), 100)
        tensor([[[  1, 155,   0]]], dtype=torch.uint8)
    """
    return call(solarize, inpt, threshold=threshold)


@kernel(solarize, *IMAGES)
def solarize_image(image: Still, threshold: float) -> Still:
    """`solarize` of an image."""
    _check_levels(image)
    return _place(image).solarize(image, threshold)


solarize_video = rename_input(solarize_image, "video")


def autocontrast(inpt: Input) -> Input:
    """Stretch each channel from black to white.

    Args:
        inpt: an image or a video.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.autocontrast(torch.tensor([[[100, 150, 200]]], dtype=torch.uint8))
        tensor([[[  0, 127, 255]]], dtype=torch.uint8)
    """
    return call(autocontrast, inpt)


@kernel(autocontrast, *IMAGES)
def autocontrast_image(image: Still) -> Still:
    """`autocontrast` of an image."""
    if isinstance(image, Tensor):
        _tensors.check_planes(image)
    return _place(image).autocontrast(image)


autocontrast_video = rename_input(autocontrast_image, "video")


def equalize(inpt: Input) -> Input:
    """Equalise the histogram of each channel.

    Args:
        inpt: an image or a video.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> greys = torch.arange(100, 104, dtype=torch.uint8)
        >>> F.equalize(greys.repeat_interleave(256).reshape(1, 32, 32)).unique()
        tensor([  0,  85, 171, 255], dtype=torch.uint8)
    """
    return call(equalize, inpt)


@kernel(equalize, *IMAGES)
def equalize_image(image: Still) -> Still:
    """`equalize` of an image of any dtype, in steps of bytes."""
    if isinstance(image, Tensor) and image.numel() == 0:
        return image
    _check_levels(image)
    return _place(image).equalize(image)


equalize_video = rename_input(equalize_image, "video")


def invert(inpt: Input) -> Input:
    """Invert the colours: white less the image.

    Args:
        inpt: an image or a video.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.invert(torch.tensor([[[0, 100, 255]]], dtype=torch.uint8))
        tensor([[[255, 155,   0]]], dtype=torch.uint8)
    """
    return call(invert, inpt)


@kernel(invert, *IMAGES)
def invert_image(image: Still) -> Still:
    """`invert` of an image."""
    _check_levels(image)
    return _place(image).invert(image)


invert_video = rename_input(invert_image, "video")


def permute_channels(inpt: Input, permutation: Sequence[int]) -> Input:
    """Permute the channels.

    Args:
        inpt: an image or a video.
        permutation: for each channel of the result the number of the channel that it was.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.permute_channels(torch.tensor([[[1]], [[2]], [[3]]]), [2, 0, 1]).flatten()
        tensor([3, 1, 2])
    """
    return call(permute_channels, inpt, permutation=permutation)


@kernel(permute_channels, *IMAGES)
def permute_channels_image(image: Still, permutation: Sequence[int]) -> Still:
    """`permute_channels` of an image; ValueError unless there is a number for each channel."""
    if not isinstance(image, Tensor):
        return F.to_pil_image(permute_channels_image(F.pil_to_tensor(image), permutation))
    if len(permutation) != image.shape[-3]:
        raise ValueError(
            "Length of permutation does not match the channels: "
            f"{len(permutation)} != {image.shape[-3]}"
        )
    return image[..., list(permutation), :, :]


permute_channels_video = rename_input(permute_channels_image, "video")
