"""`rushlight.fft`: discrete Fourier transforms, the ops of `ops/fft.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._table import namespace

if TYPE_CHECKING:
    from rushlight._fft import *  # noqa: F403

_functions = namespace("fft_")
globals().update(_functions)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [*_functions]
