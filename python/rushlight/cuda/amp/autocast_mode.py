"""`rushlight.amp.autocast_mode` for CUDA, under its deprecated names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import _C, amp
from rushlight.amp._by_device import warn_of_package

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """Deprecated: `amp.autocast("cuda", ...)`.

    It has the arguments of `amp.autocast`, but for the device.

    For an example see `amp.autocast`.
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: _C.dtype = _C.float16,
        cache_enabled: bool = True,
    ) -> None:
        warn_of_package("cuda", "autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: _C.dtype | None = None
) -> Callable[..., Any]:
    """Deprecated: `amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)`.

    It has the arguments of `amp.custom_fwd`, but for the device.

    For an example see `amp.custom_fwd`.
    """
    warn_of_package("cuda", "custom_fwd")
    return functools.partial(amp.custom_fwd, device_type="cuda", cast_inputs=cast_inputs)(fwd)


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Deprecated: `amp.custom_bwd(bwd, device_type="cuda")`.

    It has the arguments of `amp.custom_bwd`, but for the device.

    For an example see `amp.custom_fwd`.
    """
    warn_of_package("cuda", "custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")
