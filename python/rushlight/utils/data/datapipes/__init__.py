"""Datapipes: datasets that are composed of steps, `IterableWrapper(x).shuffle().batch(4)`."""

from . import iter, map

__all__ = ["iter", "map"]
