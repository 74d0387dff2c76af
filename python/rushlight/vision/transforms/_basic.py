"""Transforms that draw nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight import Tensor, nn

from . import functional as F
from ._drawn import size_of
from ._measures import check_padding
from ._modes import InterpolationMode, as_mode


class PrintedTransform(nn.Module):
    """A transform that is printed with its settings."""

    _shows: tuple[str, ...] = ()

    def __repr__(self) -> str:
        values = [getattr(self, name) for name in self._shows]
        shown = [v.value if isinstance(v, InterpolationMode) else v for v in values]
        said = ", ".join(f"{n}={v}" for n, v in zip(self._shows, shown, strict=True))
        return f"{type(self).__name__}({said})"


# ---- kinds and values ----


class ToTensor:
    """Converts an image or an array to a tensor of numbers from 0 to 1: `functional.to_tensor`.

    Example:
        >>> from rushlight.vision import transforms
        >>> import numpy
        >>> transforms.ToTensor()(numpy.full((2, 2, 3), 255, dtype="uint8")).max()
        tensor(1.)
    """

    takes_parts = True

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """Converts a Pillow image to a tensor of its own numbers: `functional.pil_to_tensor`.

    Example:
        >>> from rushlight.vision import transforms
        >>> from PIL import Image
        >>> transforms.PILToTensor()(Image.new("RGB", (4, 2))).shape
        torch.Size([3, 2, 4])
    """

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """Converts to a Pillow image of a given mode or of the one that fits:
    `functional.to_pil_image`.

    Args:
        mode: the mode of Pillow; by the number of channels if None.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.ToPILImage()(torch.zeros(3, 8, 8, dtype=torch.uint8)).size
        (8, 8)
    """

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(nn.Module):
    """Converts to a dtype in which white stays white: `functional.convert_image_dtype`.

    Args:
        dtype: the dtype of the result.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.ConvertImageDtype(torch.float32)(
        ...     torch.zeros(3, 8, 8, dtype=torch.uint8)
        ... ).dtype
        torch.float32
    """

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)


class Normalize(PrintedTransform):
    """Normalises channels: (tensor - mean) / std: `functional.normalize`.

    Args:
        mean: what is subtracted, a number for each channel.
        std: what is divided by, a number for each channel.
        inplace: whether the picture itself is changed.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.Normalize([0.5], [0.25])(torch.ones(1, 1, 2))
        tensor([[[2., 2.]]])
    """

    _shows = ("mean", "std")
    takes_parts = True

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)


class LinearTransformation(PrintedTransform):
    """Subtracts a vector from a flattened tensor and multiplies by a square matrix, for whitening.

    Args:
        transformation_matrix: (D, D), where D = C * H * W.
        mean_vector: (D).

    Raises:
        ValueError: shapes, dtypes or devices do not fit.

    Example:
        >>> from rushlight.vision import transforms
        >>> whiten = transforms.LinearTransformation(torch.eye(12), torch.zeros(12))
        >>> whiten(torch.zeros(3, 2, 2)).shape
        torch.Size([3, 2, 2])
    """

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        matrix, mean = transformation_matrix, mean_vector
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"transformation_matrix should be square, not {tuple(matrix.shape)}")
        if mean.shape[0] != matrix.shape[0]:
            raise ValueError(
                f"mean_vector should have the same length as the matrix has rows: {matrix.shape[0]}"
                f", not {mean.shape[0]}"
            )
        for wish, what in (("be on the same device", "device"), ("have the same dtype", "dtype")):
            both = [getattr(matrix, what), getattr(mean, what)]
            if both[0] != both[1]:
                raise ValueError(f"Input tensors should {wish}. Got {both[0]} and {both[1]}")
        self.transformation_matrix, self.mean_vector = matrix, mean

    def forward(self, tensor: Tensor) -> Tensor:
        image = [tensor.shape[d] for d in (-3, -2, -1)]
        rows = self.transformation_matrix.shape[0]
        if math.prod(image) != rows:
            raise ValueError(
                "Input tensor and transformation matrix have incompatible shape: an image of "
                f"{image} is not of {rows} numbers"
            )
        here, there = tensor.device, self.mean_vector.device
        if here.type != there.type:
            raise ValueError(
                f"Input tensor should be on the same device as the matrix, {there}; it is on {here}"
            )
        flat = tensor.view(-1, rows) - self.mean_vector
        return (flat @ self.transformation_matrix).view(tensor.shape)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()}, "
            f"mean_vector={self.mean_vector.tolist()})"
        )


# ---- sizes ----


class Resize(PrintedTransform):
    """Resizes to a size, or to a length of the shorter edge: `functional.resize`.

    Args:
        size: height and width, or one number for the shorter side.
        interpolation: how pixels are read.
        max_size: the largest size of the longer side.
        antialias: whether to blur before making smaller.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.Resize((4, 6))(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 6])
    """

    _shows = ("size", "interpolation", "max_size", "antialias")
    takes_parts = True

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        several = isinstance(size, Sequence)
        if not several and not isinstance(size, int):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if several and len(size) not in (1, 2):
            raise ValueError(f"size is a sequence, so it should have 1 or 2 values, not {size}")
        self.size, self.max_size = size, max_size
        self.interpolation, self.antialias = as_mode(interpolation), antialias

    def forward(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(PrintedTransform):
    """Crops the centre to a size: `functional.center_crop`.

    Args:
        size: height and width, or one number for both.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.CenterCrop(4)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    _shows = ("size",)
    takes_parts = True

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = size_of(size)

    def forward(self, img: Any) -> Any:
        return F.center_crop(img, self.size)


class Pad(PrintedTransform):
    """Pads an image: `functional.pad`.

    Args:
        padding: one number, two for both directions, or four: left, top, right, bottom.
        fill: the value of the border.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.Pad(2)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 12, 12])
    """

    _shows = ("padding", "fill", "padding_mode")

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        check_padding(padding, padding_mode)
        if not isinstance(fill, int | float | str | tuple | list):
            raise TypeError("Got inappropriate fill arg")
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class FiveCrop(PrintedTransform):
    """Crops the four corners and the centre: `functional.five_crop`.

    Args:
        size: height and width, or one number for both.

    Example:
        >>> from rushlight.vision import transforms
        >>> len(transforms.FiveCrop(4)(torch.zeros(3, 8, 8)))
        5
    """

    _shows = ("size",)

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = size_of(size)

    def forward(self, img: Any) -> tuple:
        return F.five_crop(img, self.size)


class TenCrop(PrintedTransform):
    """Crops the four corners and the centre of an image and of the flipped one:
    `functional.ten_crop`.

    Args:
        size: height and width, or one number for both.
        vertical_flip: whether to mirror top and bottom instead of left and right.

    Example:
        >>> from rushlight.vision import transforms
        >>> len(transforms.TenCrop(4)(torch.zeros(3, 8, 8)))
        10
    """

    _shows = ("size", "vertical_flip")

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = size_of(size)
        self.vertical_flip = vertical_flip

    def forward(self, img: Any) -> tuple:
        return F.ten_crop(img, self.size, self.vertical_flip)


class Grayscale(PrintedTransform):
    """Converts to grey, with one channel or three: `functional.rgb_to_grayscale`.

    Args:
        num_output_channels: 1 or 3.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.Grayscale()(torch.zeros(3, 8, 8)).shape
        torch.Size([1, 8, 8])
    """

    _shows = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, num_output_channels=self.num_output_channels)
