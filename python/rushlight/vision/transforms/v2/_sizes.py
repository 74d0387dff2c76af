"""Transforms that change sizes: resizes, and more pixels around."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.vision import transforms as v1

from .. import _measures
from .._drawn import check_sequence, integer
from . import functional as F
from ._transform import Sometimes, Transform
from ._utils import (
    check_padding,
    fill_for,
    fills_by_kind,
    query_size,
)


class Resize(Transform):
    """Another size.

    Args:
        size: (height, width), the shorter edge, or None: `max_size` is the longer one then.
        interpolation, max_size, antialias: those of `functional.resize`.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.Resize((4, 6))(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 6])
    """

    _v1_transform_cls = v1.Resize

    def __init__(
        self,
        size: Any,
        interpolation: Any = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if size is None and not isinstance(max_size, int):
            raise ValueError(_measures.needs_longest(max_size))
        edges = [size] if isinstance(size, int) else size
        if edges is not None and not (isinstance(edges, Sequence) and len(edges) in (1, 2)):
            raise ValueError(f"size can be an integer, one or two in a list, or None, not {size}")
        self.size = edges and list(edges)
        self.interpolation, self.max_size = interpolation, max_size
        self.antialias = antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resize,
            inpt,
            self.size,
            interpolation=self.interpolation,
            max_size=self.max_size,
            antialias=self.antialias,
        )


class _DrawnSize(Transform):
    """A resize to a drawn size."""

    interpolation: Any
    antialias: bool | None

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resize,
            inpt,
            size=params["size"],
            interpolation=self.interpolation,
            antialias=self.antialias,
        )


def _scale_size(height: int, width: int, ratio: Any) -> dict[str, Any]:
    return {"size": tuple(int(n * ratio) for n in (height, width))}


class ScaleJitter(_DrawnSize):
    """As large as fits into a size, times a factor from a range.

    Args:
        target_size: the size.
        scale_range: the range.
        interpolation, antialias: those of `functional.resize`.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.ScaleJitter((8, 8), scale_range=(0.5, 0.5))(torch.zeros(3, 16, 16)).shape
        torch.Size([3, 4, 4])
    """

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: tuple[float, float] = (0.1, 2.0),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.target_size = target_size
        self.scale_range = scale_range
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        low, high = self.scale_range
        factor = low + rushlight.rand(1) * (high - low)
        # As torchvision has it: the second size by the height, the first by the width.
        fits = min(t / n for t, n in zip(self.target_size, (width, height), strict=True))
        return _scale_size(height, width, fits * factor)


class RandomShortestSize(_DrawnSize):
    """The shorter edge of a drawn length.

    Args:
        min_size: the lengths, or one of them.
        max_size: the longer edge is never longer.
        interpolation, antialias: those of `functional.resize`.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomShortestSize(4)(torch.zeros(3, 8, 16)).shape
        torch.Size([3, 4, 8])
    """

    def __init__(
        self,
        min_size: Any,
        max_size: int | None = None,
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        short, long = sorted((height, width))
        ratio = self.min_size[integer(0, len(self.min_size))] / short
        most = ratio if self.max_size is None else self.max_size / long
        return _scale_size(height, width, min(ratio, most))


class RandomResize(_DrawnSize):
    """The shorter edge from `min_size` to `max_size` - 1; other arguments are those of
    `functional.resize`.

    Args:
        min_size: the least size.
        max_size: the size that is not reached.
        interpolation: the way to compute pixels, of `InterpolationMode`.
        antialias: whether a smaller image is smoothed.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomResize(4, 5)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = min_size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"size": [integer(self.min_size, self.max_size)]}


# ---- more pixels ----


class Pad(Transform):
    """Pads the input.

    Args:
        padding, padding_mode: those of `functional.pad`.
        fill: the value of new pixels: one, or one for each channel, or a dict of these by kind.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.Pad(2)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 12, 12])
    """

    _v1_transform_cls = v1.Pad

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        check_padding(padding, padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self._fill = fills_by_kind(fill)
        self.padding_mode = padding_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.pad,
            inpt,
            padding=self.padding,
            fill=fill_for(self._fill, inpt),
            padding_mode=self.padding_mode,
        )


class RandomZoomOut(Sometimes):
    """Pads to a larger canvas with probability p, as for training SSD (arXiv 1512.02325).

    Args:
        fill: that of Pad.
        side_range: range of the canvas' size by the input's, from 1 on.
        p: a probability.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomZoomOut(side_range=(2.0, 2.0), p=1.0)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 16, 16])
    """

    def __init__(
        self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5
    ) -> None:
        super().__init__(p)
        self.fill = fill
        self._fill = fills_by_kind(fill)
        check_sequence(side_range, "side_range", (2,))
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")
        self.side_range = side_range

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        low, high = self.side_range
        r = low + rushlight.rand(1) * (high - low)
        more_x, more_y = int(width * r) - width, int(height * r) - height
        r = rushlight.rand(2)
        left, top = int(more_x * r[0]), int(more_y * r[1])
        return {"padding": [left, top, more_x - left, more_y - top]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.pad, inpt, **params, fill=fill_for(self._fill, inpt))
