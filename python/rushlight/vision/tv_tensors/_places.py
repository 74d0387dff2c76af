"""Tensors of positions in images: boxes and points, with the size of their image."""

from __future__ import annotations

from enum import Enum
from typing import Any

from rushlight import Tensor

from ._base import TVTensor


class BoundingBoxFormat(Enum):
    """What the numbers of a box are: corners (X, Y), sizes (W, H), the centre (CX, CY), and of
    turned boxes the angle in degrees, counter-clockwise (R), or all four corners.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> [format.value for format in tv_tensors.BoundingBoxFormat][:3]
        ['XYXY', 'XYWH', 'CXCYWH']
    """

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"
    XYWHR = "XYWHR"
    CXCYWHR = "CXCYWHR"
    XYXYXYXY = "XYXYXYXY"


_TURNED = ("XYWHR", "CXCYWHR", "XYXYXYXY")


def is_rotated_bounding_format(format: BoundingBoxFormat | str) -> bool:
    """Whether boxes of this format can be turned.

    Args:
        format: a `BoundingBoxFormat`, or its name.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> tv_tensors.is_rotated_bounding_format("XYWHR")
        True
    """
    if not isinstance(format, BoundingBoxFormat | str):
        raise ValueError(f"format should be str or BoundingBoxFormat, not {format!r}")
    return (format.value if isinstance(format, BoundingBoxFormat) else format) in _TURNED


class BoundingBoxes(TVTensor):
    """Boxes of one image, of shape (N, 4), (N, 5) or (N, 8) by their format.

    Args:
        data: what `rushlight.as_tensor` takes; turned boxes are floating-point numbers.
        format: what the numbers are.
        canvas_size: height and width of the image.
        clamping_mode: how transforms keep boxes within the image: "soft" (the smallest box around
            what is left), "hard" (the largest one within it; the same for boxes that are not
            turned) or None.
        dtype, device, requires_grad: those of the tensor; the data's if None.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> boxes = tv_tensors.BoundingBoxes([[2, 3, 6, 5]], format="XYXY", canvas_size=(8, 8))
        >>> boxes.format.value, boxes.canvas_size
        ('XYXY', (8, 8))
    """

    format: BoundingBoxFormat
    canvas_size: tuple[int, int]
    clamping_mode: str | None
    _fields = ("format", "canvas_size", "clamping_mode")

    @classmethod
    def _wrap(
        cls,
        tensor: Tensor,
        *,
        format: BoundingBoxFormat | str,
        canvas_size: tuple[int, int],
        clamping_mode: str | None = "soft",
        check_dims: bool = True,
    ) -> BoundingBoxes:
        if check_dims:
            if tensor.ndim not in (1, 2):
                raise ValueError(f"Expected a 1D or 2D tensor, got {tensor.ndim}D")
            tensor = tensor if tensor.ndim == 2 else tensor.unsqueeze(0)
        if clamping_mode not in (None, "hard", "soft"):
            raise ValueError(f"clamping_mode must be None, hard or soft, got {clamping_mode}.")
        if isinstance(format, str):
            format = BoundingBoxFormat[format.upper()]
        values = (format, canvas_size, clamping_mode)
        return cls._make(tensor, dict(zip(cls._fields, values, strict=True)))

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> BoundingBoxes:
        return cls._wrap(tensor, **{f: kwargs.get(f, getattr(like, f)) for f in cls._fields})

    def __new__(
        cls,
        data: Any,
        *,
        format: BoundingBoxFormat | str,
        canvas_size: tuple[int, int],
        clamping_mode: str | None = "soft",
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> BoundingBoxes:
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        if not tensor.is_floating_point() and is_rotated_bounding_format(format):
            raise ValueError(
                f"Rotated bounding boxes should be floating point tensors, got {tensor.dtype}."
            )
        return cls._wrap(
            tensor, format=format, canvas_size=canvas_size, clamping_mode=clamping_mode
        )


class KeyPoints(TVTensor):
    """Points (x, y) of one image, of shape (..., 2): alone, or as polygons, skeletons and so on.

    Args:
        data: what `rushlight.as_tensor` takes.
        canvas_size: height and width of the image.
        dtype, device, requires_grad: those of the tensor; the data's if None.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> tv_tensors.KeyPoints([[4, 3]], canvas_size=(8, 8)).canvas_size
        (8, 8)
    """

    canvas_size: tuple[int, int]
    _fields = ("canvas_size",)

    @classmethod
    def _wrap(
        cls, tensor: Tensor, *, canvas_size: tuple[int, int], check_dims: bool = True
    ) -> KeyPoints:
        if check_dims:
            if tensor.ndim == 1:
                tensor = tensor.unsqueeze(0)
            elif tensor.shape[-1] != 2:
                raise ValueError(f"Expected a tensor of shape (..., 2), not {tensor.shape}")
        return cls._make(tensor, {"canvas_size": canvas_size})

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> KeyPoints:
        return cls._wrap(tensor, canvas_size=kwargs.get("canvas_size", like.canvas_size))

    def __new__(
        cls,
        data: Any,
        *,
        canvas_size: tuple[int, int],
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> KeyPoints:
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        return cls._wrap(tensor, canvas_size=canvas_size)
