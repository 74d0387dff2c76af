"""`rushlight.fft`: discrete Fourier transforms, the ops of `ops/fft.py`."""

# ruff: noqa: SIM905

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C

if TYPE_CHECKING:
    from rushlight._fft import *  # noqa: F403

_NAMES = (
    "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn "
    "hfftn ihfftn fftfreq rfftfreq fftshift ifftshift"
).split()
globals().update({name: getattr(_C.ops, f"fft_{name}") for name in _NAMES})

__all__ = [*_NAMES]
