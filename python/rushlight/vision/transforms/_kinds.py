"""Kinds of images: which module has the operations on each."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor

from . import _parts, _pictures, _tensors
from ._conversions import is_picture


def place(img: Any) -> Any:
    """The module that has the operations on this kind of image."""
    if isinstance(img, Tensor):
        return _tensors
    if is_picture(img):
        return _pictures
    if isinstance(img, _parts.Part):
        return _parts
    raise TypeError(f"Unexpected type {type(img)}")


def check_tensor(img: Any, check: Any) -> None:
    if isinstance(img, Tensor):
        check(img)
