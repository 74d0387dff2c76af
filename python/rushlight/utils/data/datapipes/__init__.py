"""Datapipes: datasets that are put together from steps, `IterableWrapper(x).shuffle().batch(4)`."""

from . import iter, map

__all__ = ["iter", "map"]
