"""Padding of the spatial dimensions. Generated from ops/modules.py."""

from typing import TYPE_CHECKING

from ._stateless.padding import *  # noqa: F403
from ._stateless.padding import __all__ as _generated

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in _generated if not name.startswith("_")]
