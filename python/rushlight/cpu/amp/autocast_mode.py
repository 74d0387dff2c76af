"""`rushlight.amp.autocast` for the CPU, under its old name."""

from __future__ import annotations

import warnings

from rushlight import _C, amp

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Deprecated: `amp.autocast("cpu", ...)`."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: _C.dtype = _C.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. "
            "Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
