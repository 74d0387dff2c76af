"""`rushlight.amp.autocast_mode` for CUDA, under its old names."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from rushlight import _C, amp

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


def _warn(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. "
        f"Please use `torch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):
    """Deprecated: `amp.autocast("cuda", ...)`."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: _C.dtype = _C.float16,
        cache_enabled: bool = True,
    ) -> None:
        _warn("autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: _C.dtype | None = None
) -> Callable[..., Any]:
    """Deprecated: `amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)`."""
    _warn("custom_fwd")
    return functools.partial(amp.custom_fwd, device_type="cuda", cast_inputs=cast_inputs)(fwd)


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Deprecated: `amp.custom_bwd(bwd, device_type="cuda")`."""
    _warn("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")
