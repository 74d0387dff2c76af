"""`rushlight.special`: special functions, the ops of `ops/special.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._table import namespace

if TYPE_CHECKING:
    from rushlight._special import *  # noqa: F403

_functions = namespace("special_")
globals().update(_functions)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [*_functions]
