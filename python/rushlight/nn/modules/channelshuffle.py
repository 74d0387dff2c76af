"""Shuffling of channels between groups. Generated from ops/modules.py."""

from ._stateless.channelshuffle import *  # noqa: F403
from ._stateless.channelshuffle import __all__ as _generated

__all__ = [name for name in _generated if not name.startswith("_")]
