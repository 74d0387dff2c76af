"""The beginning of a chain of datapipes."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rushlight._warnings import warn

from ..datapipe import IterDataPipe, length_of

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The items of an iterable.

    Args:
        iterable: anything that can be iterated over.
        deepcopy: iterate over a copy each time.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]))
        [1, 2]
    """

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:
                warn("The input iterable can not be deepcopied: changes to it are seen")
        yield from source

    def __len__(self) -> int:
        return length_of(self, self.iterable)
