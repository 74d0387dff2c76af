"""Rearrangement of channels to pixels, and back. Generated from ops/modules.py."""

from ._stateless.pixelshuffle import *  # noqa: F403
from ._stateless.pixelshuffle import __all__ as _generated

__all__ = [name for name in _generated if not name.startswith("_")]
