"""Tensors of pixels: images, videos, masks. A notebook shows them."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor
from rushlight.vision.transforms import _conversions

from ._base import TVTensor

if TYPE_CHECKING:
    from typing_extensions import Self


def _png(image: Tensor) -> bytes:
    """The PNG file of an image with one to four channels; booleans are black and white."""
    if image.dtype == rushlight.bool:
        image = image.to(rushlight.uint8) * 255
    elif image.is_floating_point():
        image = (image.detach().clamp(0.0, 1.0) * 255.0).round().to(rushlight.uint8)
    file = io.BytesIO()
    _conversions.to_pil_image(image).save(file, format="PNG")
    return file.getvalue()


_SHOWN = {rushlight.bool, rushlight.uint8, rushlight.float16, rushlight.float32, rushlight.float64}


class _Pixels(TVTensor):
    _least = 0  # dimensions
    _takes_pictures = True

    def __new__(
        cls,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> Self:
        if cls._takes_pictures and _conversions.is_picture(data):
            data = _conversions.pil_to_tensor(data)
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        if tensor.ndim < cls._least:
            raise ValueError(f"Tensor must be {cls._least}D or higher, got {tensor.ndim}D tensor.")
        return cls._from_tensor(tensor)

    @classmethod
    def _from_tensor(cls, tensor: Tensor) -> Self:
        return cls._make(tensor, {})

    def _plain_tensor(self) -> Tensor:
        return self.as_subclass(Tensor)

    def _can_be_shown(self) -> bool:
        return self.dtype in _SHOWN and self.device.type != "meta" and self.numel() > 0

    def _repr_png_(self) -> bytes | None:
        """A single image as a PNG file, for notebooks; None if it is none."""
        single = self.ndim == 2 or (self.ndim == 3 and self.shape[0] in (1, 2, 3, 4))
        if not single or not self._can_be_shown():
            return None
        return _png(self._plain_tensor())

    def _grid(self) -> Tensor | None:
        """Several images as one, None if they are not several."""
        from rushlight.vision import utils

        if self.ndim < 4 or self.shape[-3] not in (1, 3) or not self._can_be_shown():
            return None
        return utils.make_grid(self._plain_tensor().reshape(-1, *self.shape[-3:]))

    def _repr_html_(self) -> str | None:
        """Several images as a grid, for notebooks; None if they are not several."""
        grid = self._grid()
        if grid is None:
            return None
        data = base64.b64encode(_png(grid)).decode()
        said = f"{type(self).__name__}, {tuple(self.shape)}, {self.dtype}"
        return f'<figure><img src="data:image/png;base64,{data}"><p>{said}</p></figure>'


class Image(_Pixels):
    """An image or several, of shape (..., C, H, W).

    Args:
        data: a picture of Pillow, or what `rushlight.as_tensor` takes; of two dimensions it has one
            channel.
        dtype, device, requires_grad: those of the tensor; the data's if None.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> tv_tensors.Image(torch.zeros(3, 4, 4)).shape
        torch.Size([3, 4, 4])
    """

    _least = 2

    @classmethod
    def _from_tensor(cls, tensor: Tensor) -> Self:
        return cls._make(tensor if tensor.ndim > 2 else tensor.unsqueeze(0), {})


class Video(_Pixels):
    """A video or several, of shape (..., T, C, H, W); arguments are those of Image.

    Args:
        data: what `rushlight.as_tensor` takes.
        dtype: the dtype; the data's if None.
        device: where it lies; where the data does if None.
        requires_grad: whether gradients are recorded; the data's answer if None.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> tv_tensors.Video(torch.zeros(2, 3, 4, 4)).shape
        torch.Size([2, 3, 4, 4])
    """

    _least = 4
    _takes_pictures = False


class Mask(_Pixels):
    """Masks of objects or of classes, of shape (..., H, W); arguments are those of Image.

    Args:
        data: what `rushlight.as_tensor` takes.
        dtype: the dtype; the data's if None.
        device: where it lies; where the data does if None.
        requires_grad: whether gradients are recorded; the data's answer if None.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> tv_tensors.Mask(torch.zeros(4, 4)).shape
        torch.Size([4, 4])
    """
