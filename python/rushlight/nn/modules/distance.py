"""Distances between vectors. Generated from ops/modules.py."""

from ._stateless.distance import *  # noqa: F403
from ._stateless.distance import __all__ as _generated

__all__ = [name for name in _generated if not name.startswith("_")]
