"""`rushlight.amp.GradScaler` for the CPU, under its deprecated name."""

from __future__ import annotations

from rushlight.amp._by_device import ScalerOfDevice

__all__ = ["GradScaler"]


class GradScaler(ScalerOfDevice):
    """Deprecated: `amp.GradScaler("cpu", ...)`."""

    _kind = "cpu"
