"""`rushlight.signal`: windows for spectra."""

from rushlight.signal import windows

__all__ = ["windows"]
