"""What a sample consists of: kinds, sizes, labels; checks of settings, and fills by kind."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PIL.Image import Image as Picture

from rushlight.vision.transforms._measures import check_padding_mode
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

from .functional._meta import get_dimensions, get_size
from .functional._registry import is_pure_tensor

# Images in a sample, and all that has a size.
IMAGES = (is_pure_tensor, Image, Picture, Video)
SIZED = (*IMAGES, Mask, BoundingBoxes, KeyPoints)


def sample_of(inputs: Any) -> Any:
    """What a transform was called with: the only input, or all of them as a tuple."""
    return inputs if len(inputs) > 1 else inputs[0]


def check_type(obj: Any, types_or_checks: tuple) -> bool:
    """Whether it is of one of the types, or passes one of the checks.

    Args:
        obj: the object.
        types_or_checks: types, or functions that say whether an input is one.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> v2.check_type(tv_tensors.Image(torch.zeros(3, 4, 4)), (tv_tensors.Image,))
        True
    """
    for check in types_or_checks:
        if isinstance(obj, check) if isinstance(check, type) else check(obj):
            return True
    return False


def has_any(flat_inputs: Sequence[Any], *types_or_checks: Any) -> bool:
    """Whether one of the inputs passes one of the checks.

    Args:
        flat_inputs: the inputs, in a list.
        types_or_checks: types, or functions that say whether an input is one.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> v2.has_any([tv_tensors.Image(torch.zeros(3, 4, 4))], tv_tensors.Image, tv_tensors.Mask)
        True
    """
    return any(check_type(inpt, types_or_checks) for inpt in flat_inputs)


def has_all(flat_inputs: Sequence[Any], *types_or_checks: Any) -> bool:
    """Whether for each check there is an input that passes it.

    Args:
        flat_inputs: the inputs, in a list.
        types_or_checks: types, or functions that say whether an input is one.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> v2.has_all([tv_tensors.Image(torch.zeros(3, 4, 4))], tv_tensors.Image, tv_tensors.Mask)
        False
    """
    return all(has_any(flat_inputs, check) for check in types_or_checks)


def _first_of_kind(flat_inputs: Sequence[Any], kind: type, name: str) -> Any:
    for inpt in flat_inputs:
        if isinstance(inpt, kind):
            return inpt
    raise ValueError(f"No {name} were found: the input holds none")


def passes(transform: Any, inpt: Any) -> str:
    """The warning that a kind of input stays as it is."""
    kind = type(inpt).__name__
    return f"{type(transform).__name__}() is currently passing through inputs of type {kind}"


def get_bounding_boxes(flat_inputs: Sequence[Any]) -> BoundingBoxes:
    """The first boxes; ValueError without any.

    Args:
        flat_inputs: the inputs, in a list.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> boxes = tv_tensors.BoundingBoxes([[2, 3, 6, 5]], format="XYXY", canvas_size=(8, 8))
        >>> v2.get_bounding_boxes([torch.zeros(1), boxes]).tolist()
        [[2, 3, 6, 5]]
    """
    return _first_of_kind(flat_inputs, BoundingBoxes, "bounding boxes")


def get_keypoints(flat_inputs: Sequence[Any]) -> KeyPoints:
    """The first points; ValueError without any.

    Args:
        flat_inputs: the inputs, in a list.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> points = tv_tensors.KeyPoints([[4, 3]], canvas_size=(8, 8))
        >>> v2.get_keypoints([torch.zeros(1), points]).tolist()
        [[4, 3]]
    """
    return _first_of_kind(flat_inputs, KeyPoints, "keypoints")


def _one(sizes: set, what: str, axes: str) -> Any:
    if not sizes:
        raise TypeError(f"No {what} was found in the sample")
    if len(sizes) > 1:
        said = ", ".join(str(size) for size in sorted(sizes))
        raise ValueError(f"Found multiple {axes} dimensions in the sample: {said}")
    return sizes.pop()


def query_chw(flat_inputs: Sequence[Any]) -> tuple[int, int, int]:
    """Channels, height and width of the images and videos; ValueError unless all have the same,
    TypeError without any.

    Args:
        flat_inputs: the inputs, in a list.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.query_chw([torch.zeros(3, 4, 6)])
        (3, 4, 6)
    """
    sizes = {tuple(get_dimensions(inpt)) for inpt in flat_inputs if check_type(inpt, IMAGES)}
    return _one(sizes, "image or video", "CxHxW")


def query_size(flat_inputs: Sequence[Any]) -> tuple[int, int]:
    """Height and width of all that has them; ValueError unless all have the same, TypeError without
    any.

    Args:
        flat_inputs: the inputs, in a list.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.query_size([torch.zeros(3, 4, 6)])
        (4, 6)
    """
    sizes = {tuple(get_size(inpt)) for inpt in flat_inputs if check_type(inpt, SIZED)}
    return _one(sizes, "image, video, mask, bounding box of keypoint", "HxW")


# ---- settings ----


def check_padding(padding: Any, padding_mode: Any) -> None:
    """ValueError unless it is a whole number, or one, two or four of them, and a mode."""
    several = isinstance(padding, tuple | list)
    values = padding if several else [padding]
    if len(values) not in (1, 2, 4) or not all(isinstance(v, int) for v in values):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 of them, got {padding}")
    check_padding_mode(padding_mode)


def fills_by_kind(fill: Any) -> dict[Any, Any]:
    """A fill for each kind, and for "others"; TypeError for what is no fill."""
    if isinstance(fill, dict):
        return {kind: fills_by_kind(value)["others"] for kind, value in fill.items()}
    if fill is not None and not isinstance(fill, numbers.Number | tuple | list):
        raise TypeError(
            f"Got inappropriate fill arg: a number, several, or a dict of them, not {type(fill)}"
        )
    return {"others": [float(v) for v in fill] if isinstance(fill, tuple | list) else fill}


def fill_for(fills: dict[Any, Any], inpt: Any) -> Any:
    """The fill for an input, None if there is none for its kind."""
    return fills.get(type(inpt), fills.get("others"))


# ---- labels ----


def _usual_labels(inputs: Any) -> Any:
    """The second of several inputs if it is a tensor; else what it, or the only input, has under
    "labels", or under a key that contains "label", in any case of letters.
    """
    if isinstance(inputs, tuple | list):
        inputs = inputs[1]
    if is_pure_tensor(inputs):
        return inputs
    if not isinstance(inputs, Mapping):
        raise ValueError(
            "the default labels_getter finds labels in a dictionary, or in the second of two "
            f"inputs where that is a dictionary or a tensor, but got {inputs}"
        )
    for matches in (lambda key: key == "labels", lambda key: "label" in key):
        for key in inputs:
            if matches(key.lower()):
                return inputs[key]
    raise ValueError(
        "Could not infer where the labels are: no key has `label` in it. labels_getter is a "
        "function of the sample that finds them, or None where there are none."
    )


def labels_getter_of(setting: Any) -> Callable[[Any], Any]:
    """The function that finds the labels; ValueError for settings other than "default", None and
    functions.
    """
    if setting == "default":
        return _usual_labels
    if callable(setting):
        return setting
    if setting is None:
        return lambda inputs: None
    raise ValueError(
        f"labels_getter should either be 'default', None or a function, not {setting!r}"
    )
