"""Padding of the spatial dimensions. Generated from ops/modules.py."""

from ._stateless.padding import *  # noqa: F403
from ._stateless.padding import __all__ as _generated

__all__ = [name for name in _generated if not name.startswith("_")]
