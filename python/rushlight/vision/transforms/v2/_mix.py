"""Transforms that overwrite or mix: erasing, MixUp, CutMix, JPEG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from PIL.Image import Image as Picture

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn
from rushlight.nn.functional import one_hot
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision import transforms as v1
from rushlight.vision import tv_tensors
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video

from .._drawn import check_sequence, integer, patch
from . import functional as F
from ._transform import Sometimes, Transform
from ._utils import has_any, labels_getter_of, passes, query_chw, query_size, sample_of
from .functional._registry import is_pure_tensor


class RandomErasing(Sometimes):
    """A part of images overwritten, with probability p.

    Args:
        p: a probability.
        scale: range of the part's share of the area.
        ratio: range of its height by its width.
        value: the value to write: a number, one for each channel, or "random" for normal noise.
        inplace: whether tensors themselves are changed.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomErasing(p=1.0)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomErasing

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p)
        v1.RandomErasing(p, scale, ratio, value)  # the same checks
        self.scale = scale
        self.ratio = ratio
        if isinstance(value, str):
            self.value = None
        else:
            self.value = (
                [float(v) for v in value] if isinstance(value, Sequence) else [float(value)]
            )
        self.inplace = inplace

    def _call_kernel(self, functional: Callable, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(inpt, BoundingBoxes | KeyPoints | Mask):
            warn(passes(self, inpt))
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        dimensions = query_chw(flat_inputs)
        if self.value is not None and len(self.value) not in (1, dimensions[0]):
            raise ValueError(
                "value is a sequence, so it should have either a single value or one for each of "
                f"{dimensions[0]} channels"
            )
        return {"patch": patch(dimensions, self.scale, self.ratio, self.value)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if params["patch"] is None:
            return inpt
        i, j, h, w, v = params["patch"]
        return self._call_kernel(F.erase, inpt, i=i, j=j, h=h, w=w, v=v, inplace=self.inplace)


class _BatchMix(Transform):
    """Batches of images, and their labels, mixed with the ones before them in the batch."""

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        num_classes: int | None = None,
        labels_getter: Any = "default",
    ) -> None:
        super().__init__()
        self.alpha = float(alpha)
        both = rushlight.tensor([self.alpha])
        self._dist = rushlight.distributions.Beta(both, both)
        self.num_classes = num_classes
        self._labels_getter = labels_getter_of(labels_getter)

    def _share(self) -> float:
        return float(self._dist.sample(()))

    def _labels(self, inputs: Any) -> Tensor:
        labels = self._labels_getter(inputs)
        if not isinstance(labels, Tensor):
            raise ValueError(f"labels must be a tensor, not {type(labels).__name__}")
        if labels.ndim not in (1, 2):
            raise ValueError(
                "labels should be index based, of one dimension, or a row of probabilities for "
                f"each image, but their shape is {tuple(labels.shape)}"
            )
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[-1]):
            raise ValueError(
                "the last dimension of 2D labels must match num_classes: "
                f"{labels.shape[-1]} != {self.num_classes}; without num_classes it says the number"
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("num_classes must be passed if the labels are numbers of classes")
        return labels

    def forward(self, *inputs: Any) -> Any:
        """The batch, mixed with itself in another order; labels become probabilities."""
        sample = sample_of(inputs)
        flat, spec = tree_flatten(sample)
        wanted = self._needs_transform_list(flat)
        if has_any(flat, Picture, BoundingBoxes, Mask, KeyPoints):
            raise ValueError(
                f"{type(self).__name__}() does not support PIL images, bounding boxes, keypoints "
                "and masks."
            )
        labels = self._labels(sample)
        params = {
            "labels": labels,
            "batch_size": labels.shape[0],
            **self.make_params([inpt for inpt, w in zip(flat, wanted, strict=True) if w]),
        }
        wanted[next(i for i, inpt in enumerate(flat) if inpt is labels)] = True
        made = [
            self.transform(inpt, params) if w else inpt
            for inpt, w in zip(flat, wanted, strict=True)
        ]
        return tree_unflatten(made, spec)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt is params["labels"]:
            if inpt.ndim == 1:
                assert self.num_classes is not None  # who calls has asked
                inpt = one_hot(inpt, num_classes=self.num_classes)
            shares = inpt if inpt.is_floating_point() else inpt.float()
            return _mix_with_previous(shares, params["share"])
        if not isinstance(inpt, Image | Video) and not is_pure_tensor(inpt):
            return inpt
        dims = 5 if isinstance(inpt, Video) else 4
        if inpt.ndim != dims:
            raise ValueError(
                f"Expected a batched input with {dims} dims, but got {inpt.ndim} dimensions "
                "instead."
            )
        if inpt.shape[0] != params["batch_size"]:
            raise ValueError(
                f"the batch size of the image or video, {inpt.shape[0]}, does not match that of "
                f"the labels, {params['batch_size']}"
            )
        made = self._mix(inpt.as_subclass(Tensor), params)
        return tv_tensors.wrap(made, like=inpt) if isinstance(inpt, TVTensor) else made

    def _mix(self, batch: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not say how it mixes")


def _mix_with_previous(batch: Tensor, share: float) -> Tensor:
    return batch.roll(1, 0).mul_(1.0 - share).add_(batch.mul(share))


class MixUp(_BatchMix):
    """Batches of images, and their labels, mixed by a drawn share with the ones before them in the
    batch (arXiv 1710.09412).

    Args:
        alpha: the alpha of the Beta distribution of the share.
        num_classes: how many classes; None if labels are shares already.
        labels_getter: a function of the sample that finds the labels, or "default": the second
            input, or what it has under a key like "labels".

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> images, labels = v2.MixUp(num_classes=3)(
        ...     torch.zeros(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
        ... )
        >>> images.shape, labels.shape
        (torch.Size([4, 3, 8, 8]), torch.Size([4, 3]))
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"share": self._share()}

    def _mix(self, batch: Tensor, params: dict[str, Any]) -> Tensor:
        return _mix_with_previous(batch, params["share"])


class CutMix(_BatchMix):
    """Batches of images with a rectangle from the ones before them in the batch, and their labels
    mixed by its area (arXiv 1905.04899); arguments are those of MixUp.

    Args:
        alpha: the alpha of the Beta distribution of the share.
        num_classes: how many classes; None if labels are shares already.
        labels_getter: a function of the sample that finds the labels; "default": the second
            input, or what it has under a key like "labels".

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> images, labels = v2.CutMix(num_classes=3)(
        ...     torch.zeros(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
        ... )
        >>> images.shape, labels.shape
        (torch.Size([4, 3, 8, 8]), torch.Size([4, 3]))
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        share = self._share()
        height, width = query_size(flat_inputs)
        x, y = integer(0, width), integer(0, height)
        side = 0.5 * math.sqrt(1.0 - share)
        w, h = int(side * width), int(side * height)
        left, top, right, bottom = (
            max(x - w, 0),
            max(y - h, 0),
            min(x + w, width),
            min(y + h, height),
        )
        area = (right - left) * (bottom - top)
        return {
            "rows": slice(top, bottom),
            "columns": slice(left, right),
            "share": 1.0 - area / (width * height),
        }

    def _mix(self, batch: Tensor, params: dict[str, Any]) -> Tensor:
        out = batch.clone()
        part = (..., params["rows"], params["columns"])
        out[part] = batch[part].roll(1, 0)
        return out


class JPEG(Transform):
    """Compressed as a JPEG file and decoded again.

    Args:
        quality: 1 to 100, or a range (lowest, highest) of whole numbers to draw from.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.JPEG(50)(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(self, quality: int | Sequence[int]) -> None:
        super().__init__()
        if isinstance(quality, bool):
            raise TypeError("quality can't be bool")
        if isinstance(quality, int):
            quality = [quality, quality]
        check_sequence(quality, "quality", (2,))
        low, high = quality
        if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high <= 100):
            raise ValueError(
                f"quality must be an integer from 1 (coarsest) to 100, not {quality!r}"
            )
        self.quality = quality

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"quality": integer(self.quality[0], self.quality[1] + 1)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.jpeg, inpt, **params)
