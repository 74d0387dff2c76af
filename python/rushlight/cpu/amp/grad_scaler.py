"""`rushlight.amp.GradScaler` for the CPU, under its deprecated name."""

from __future__ import annotations

from rushlight.amp._by_device import ScalerOfDevice

__all__ = ["GradScaler"]


class GradScaler(ScalerOfDevice):
    """Deprecated: `amp.GradScaler("cpu", ...)`.

    It has the arguments of `amp.GradScaler`, but for the device.

    For an example see `amp.GradScaler`.
    """

    _kind = "cpu"
