"""`rushlight.signal`: window functions for spectra."""

from rushlight.signal import windows

__all__ = ["windows"]
