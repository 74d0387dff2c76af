"""Dropout of elements and of channels. Generated from ops/modules.py."""

from ._stateless.dropout import *  # noqa: F403
from ._stateless.dropout import __all__ as _generated

__all__ = [name for name in _generated if not name.startswith("_")]
