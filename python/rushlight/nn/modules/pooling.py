"""Pooling over windows. Generated from ops/modules.py."""

from .._stateless.pooling import *  # noqa: F403
from .._stateless.pooling import __all__ as _generated

__all__ = [name for name in _generated if not name.startswith("_")]
