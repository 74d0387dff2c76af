"""Transforms that take away boxes and points that are of no use, with what belongs to them."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision import tv_tensors
from rushlight.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask, TVTensor

from ._transform import Transform
from ._utils import get_bounding_boxes, get_keypoints, labels_getter_of, sample_of
from .functional._formats import valid_boxes, valid_points


class _Sanitize(Transform):
    _kind: type[TVTensor]  # what is looked at
    _also: tuple[type, ...] = ()  # what may have an entry for each of it

    def __init__(self, labels_getter: Any) -> None:
        super().__init__()
        self.labels_getter = labels_getter
        self._labels_getter = labels_getter_of(labels_getter)

    def _find_valid(self, flat_inputs: list[Any]) -> tuple[Any, Tensor]:
        """What is looked at, and which of it stays."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it looks at")

    def _labels(self, inputs: Any) -> tuple[Tensor, ...]:
        found = self._labels_getter(inputs)
        if found is None:
            return ()
        labels = tuple(found) if isinstance(found, tuple | list) else (found,)
        for label in labels:
            if not isinstance(label, Tensor):
                raise ValueError(
                    "what labels_getter finds in a sample must be a tensor or None, got "
                    f"{type(label)}"
                )
        return labels

    def forward(self, *inputs: Any) -> Any:
        """The sample without the boxes or points that do not count, and without their labels."""
        sample = sample_of(inputs)
        labels = self._labels(sample)
        flat, spec = tree_flatten(sample)
        found, valid = self._find_valid(flat)
        for label in labels:
            if label.shape[0] != found.shape[0]:
                raise ValueError(
                    f"Number of {self._kind.__name__} (shape={found.shape}) must match the number "
                    f"of labels. Found labels with shape={label.shape})."
                )
        params = {"valid": valid, "labels": labels}
        return tree_unflatten([self.transform(inpt, params) for inpt in flat], spec)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        valid = params["valid"]
        if any(inpt is label for label in params["labels"]):
            return inpt[valid]
        if not isinstance(inpt, (self._kind, *self._also)):
            return inpt
        if isinstance(inpt, self._also) and (inpt.ndim == 0 or len(inpt) != len(valid)):
            return inpt
        return tv_tensors.wrap(inpt.as_subclass(Tensor)[valid], like=inpt)


class SanitizeBoundingBoxes(_Sanitize):
    """Without boxes that are too small or leave their image, and without their masks and labels.

    Args:
        min_size: the least width and height, from 1 on.
        min_area: the least area, at least 1.
        labels_getter: a function of the sample that finds the labels, or several tensors with an
            entry for each box; None for none; "default": what the sample, or its second part, has
            under a key like "labels".

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> boxes = tv_tensors.BoundingBoxes(
        ...     [[2, 3, 6, 5], [1, 1, 1, 4]], format="XYXY", canvas_size=(8, 8)
        ... )
        >>> v2.SanitizeBoundingBoxes(labels_getter=None)(boxes).tolist()
        [[2, 3, 6, 5]]
    """

    _kind = BoundingBoxes
    _also = (Mask,)

    def __init__(
        self, min_size: float = 1.0, min_area: float = 1.0, labels_getter: Any = "default"
    ) -> None:
        super().__init__(labels_getter)
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        if min_area < 1:
            raise ValueError(f"min_area must be >= 1, got {min_area}.")
        self.min_size = min_size
        self.min_area = min_area

    def _find_valid(self, flat_inputs: list[Any]) -> tuple[Any, Tensor]:
        boxes = get_bounding_boxes(flat_inputs)
        of = (boxes.format, boxes.canvas_size)
        return boxes, valid_boxes(boxes.as_subclass(Tensor), *of, self.min_size, self.min_area)


class SanitizeKeyPoints(_Sanitize):
    """Without points, or groups of points, that leave their image, and without their labels.

    Args:
        labels_getter: that of SanitizeBoundingBoxes.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> points = tv_tensors.KeyPoints([[9, 3], [1, 1]], canvas_size=(8, 8))
        >>> v2.SanitizeKeyPoints(labels_getter=None)(points).tolist()
        [[1, 1]]
    """

    _kind = KeyPoints

    def __init__(self, labels_getter: Any = None) -> None:
        super().__init__(labels_getter)

    def _find_valid(self, flat_inputs: list[Any]) -> tuple[Any, Tensor]:
        points = get_keypoints(flat_inputs)
        return points, valid_points(points.as_subclass(Tensor), points.canvas_size)
