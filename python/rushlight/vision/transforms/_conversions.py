"""Pictures, arrays and tensors as one another, and tensors in other dtypes and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

import rushlight
from rushlight import Tensor

from . import _parts, _tensors
from ._parts import Part


def is_picture(img: Any) -> bool:
    """Whether it is one of Pillow's."""
    return isinstance(img, Image.Image)


def want_tensor(img: Any, name: str = "img") -> None:
    """TypeError unless it is a tensor."""
    if not isinstance(img, Tensor):
        raise TypeError(f"{name} should be Tensor Image. Got {type(img)}")


def byte_values(channels: int) -> Tensor:
    """What `to_tensor` makes of each byte, for each channel: (channels, 256)."""
    values = rushlight.arange(256, dtype=rushlight.uint8, device="cpu")
    values = values.to(rushlight.get_default_dtype()).div_(255)
    return values.repeat(channels, 1)


_PIXELS = {"I": np.int32, "I;16": np.int16, "F": np.float32}  # bytes for all other modes


def to_tensor(pic: Any) -> Tensor:
    """Convert an image, or an array of shape (H, W) or (H, W, C), to a tensor of shape (C, H, W).

    Bytes become numbers of the default dtype from 0 to 1; other numbers stay.

    Args:
        pic: a Pillow image or an array (H, W, C).

    Raises:
        TypeError: it is neither.
        ValueError: the array has another number of dimensions.

    Example:
        >>> from PIL import Image
        >>> torch.vision.transforms.functional.to_tensor(Image.new("L", (2, 1), 255))
        tensor([[[1., 1.]]])
    """
    if isinstance(pic, Part):
        return pic.planes(byte_values(_parts.get_dimensions(pic)[0]))
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        image = rushlight.from_numpy(pic if pic.ndim == 3 else pic[:, :, None])
    elif is_picture(pic):
        pixels = np.array(pic, _PIXELS.get(pic.mode, np.uint8), copy=True)
        if pic.mode == "1":
            pixels = 255 * pixels
        image = rushlight.from_numpy(pixels).view(pic.height, pic.width, len(pic.getbands()))
    else:
        raise TypeError(f"pic should be a picture of PIL or an array, not {type(pic).__name__}")
    image = image.permute(2, 0, 1)
    if image.dtype == rushlight.uint8:
        dtype, plain = rushlight.get_default_dtype(), rushlight.contiguous_format
        return image.to(dtype, memory_format=plain).div_(255)
    return image.contiguous()


def pil_to_tensor(pic: Any) -> Tensor:
    """Convert a Pillow image to a tensor (C, H, W) of its own numbers; TypeError for anything
    else.

    Args:
        pic: a Pillow image.

    Example:
        >>> from PIL import Image
        >>> torch.vision.transforms.functional.pil_to_tensor(Image.new("L", (2, 1), 7))
        tensor([[[7, 7]]], dtype=torch.uint8)
    """
    if not is_picture(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    pixels = rushlight.as_tensor(np.array(pic, copy=True))
    return pixels.view(pic.height, pic.width, len(pic.getbands())).permute(2, 0, 1)


_ONE_CHANNEL = {np.uint8: "L", np.int16: "I;16", np.int32: "I", np.float32: "F"}
_SEVERAL = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}  # defaults first


def to_pil_image(pic: Any, mode: str | None = None) -> Image.Image:
    """Convert a tensor (C, H, W) or (H, W), or an array (H, W, C) or (H, W), to a Pillow image.

    Floating-point numbers of tensors are taken to be from 0 to 1 and become bytes, unless the mode
    is "F".

    Args:
        pic: the image, of at most four channels.
        mode: of the picture; found by channels and dtype if None.

    Raises:
        TypeError: it is neither a tensor nor an array, or there is no mode for its dtype.
        ValueError: another number of dimensions or channels, or a mode that does not fit.

    Example:
        >>> image = torch.zeros(3, 4, 6, dtype=torch.uint8)
        >>> torch.vision.transforms.functional.to_pil_image(image).size
        (6, 4)
    """
    if not isinstance(pic, Tensor | np.ndarray):
        raise TypeError(f"pic should be a tensor or an array, not {type(pic).__name__}")
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    if isinstance(pic, Tensor):
        pic = pic if pic.ndim == 3 else pic.unsqueeze(0)
        if pic.is_floating_point() and mode != "F":
            pic = pic.mul(255).byte()
        pixels = pic.detach().cpu().permute(1, 2, 0).numpy()
    else:
        pixels = pic if pic.ndim == 3 else pic[:, :, None]
    channels = pixels.shape[2]
    if channels == 0:
        raise ValueError("pic has no channels: there is not enough image data")
    if channels > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {channels} channels.")
    if channels == 1:
        expected = _ONE_CHANNEL.get(pixels.dtype.type)
        if mode is not None and mode != expected:
            raise ValueError(
                f"Incorrect mode ({mode}) supplied for input type {pixels.dtype}. "
                f"Should be {expected}"
            )
        mode = expected
    else:
        permitted = _SEVERAL[channels]
        if mode is not None and mode not in permitted:
            raise ValueError(f"Only modes {list(permitted)} are supported for {channels}D inputs")
        if mode is None and pixels.dtype == np.uint8:
            mode = permitted[0]
    if mode is None:
        raise TypeError(f"Input type {pixels.dtype} is not supported")
    size = (pixels.shape[1], pixels.shape[0])
    return Image.frombytes(mode, size, np.ascontiguousarray(pixels).tobytes())


def convert_image_dtype(image: Tensor, dtype: Any = rushlight.float32) -> Tensor:
    """Convert an image to another dtype: white (1, or the largest integer) stays white.

    Args:
        image: the image, a tensor.
        dtype: the dtype of the result.

    Raises:
        TypeError: it is no tensor.
        RuntimeError: integers of the dtype are finer than the floating-point numbers.

    Example:
        >>> image = torch.tensor([0, 255], dtype=torch.uint8)
        >>> torch.vision.transforms.functional.convert_image_dtype(image)
        tensor([0., 1.])
    """
    if not isinstance(image, Tensor):
        raise TypeError("Input img should be Tensor Image")
    if not isinstance(dtype, rushlight.dtype):
        raise TypeError(f"convert_image_dtype: expected a dtype, but got {dtype!r}")
    return _tensors.convert_image_dtype(image, dtype)


def normalize(
    tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    """Normalise channels: (tensor - mean) / std, with a mean and a deviation for each.

    Args:
        tensor: (..., C, H, W), floating-point.
        mean: one number, or C.
        std: likewise; not 0 (ValueError).
        inplace: whether the tensor itself is changed.

    Example:
        >>> image = torch.full((1, 1, 2), 0.75)
        >>> torch.vision.transforms.functional.normalize(image, mean=[0.5], std=[0.25])
        tensor([[[1., 1.]]])
    """
    want_tensor(tensor)
    if tensor.ndim < 2:
        raise TypeError("Tensor is not a torch image.")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            "Expected tensor to be a tensor image, that is of 3 dimensions or more; its shape is "
            f"{tuple(tensor.shape)}"
        )
    middle = rushlight.as_tensor(mean, dtype=tensor.dtype, device=tensor.device)
    spread = rushlight.as_tensor(std, dtype=tensor.dtype, device=tensor.device)
    if (spread == 0).any():
        raise ValueError(
            f"std evaluated to zero after conversion to {tensor.dtype}: it cannot divide anything"
        )
    middle = middle.view(-1, 1, 1) if middle.ndim == 1 else middle
    spread = spread.view(-1, 1, 1) if spread.ndim == 1 else spread
    if tensor.dtype in (rushlight.float32, rushlight.float64):
        ops = rushlight._C.ops
        return (ops._standardize_ if inplace else ops._standardize)(tensor, middle, spread)
    return (tensor.sub_(middle) if inplace else tensor.sub(middle)).div_(spread)
