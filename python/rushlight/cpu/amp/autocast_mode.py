"""`rushlight.amp.autocast` for the CPU, under its deprecated name."""

from __future__ import annotations

from rushlight import _C, amp
from rushlight.amp._by_device import warn_of_package

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Deprecated: `amp.autocast("cpu", ...)`.

    It has the arguments of `amp.autocast`, but for the device.

    For an example see `amp.autocast`.
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: _C.dtype = _C.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        warn_of_package("cpu", "autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
