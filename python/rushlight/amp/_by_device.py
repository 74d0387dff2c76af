"""What is left of names with a kind of device in them; new ones take it as an argument."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight._warnings import warn
from rushlight.amp.grad_scaler import GradScaler

__all__ = [
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_cpu_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype",
]


def warn_of_package(device_type: str, name: str) -> None:
    """Warns that `cuda.amp.NAME` or `cpu.amp.NAME` is `amp.NAME` by now."""
    warn(
        f"`torch.{device_type}.amp.{name}(args...)` is deprecated. "
        f"Please use `torch.amp.{name}('{device_type}', args...)` instead.",
        FutureWarning,
    )


class ScalerOfDevice(GradScaler):
    """`GradScaler` whose subclasses say the kind of device."""

    _kind: str

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warn_of_package(self._kind, "GradScaler")
        super().__init__(
            self._kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def _warn(old: str, new: str) -> None:
    warn(f"torch.{old} is deprecated. Please use torch.{new} instead.", DeprecationWarning)


def is_autocast_cpu_enabled() -> bool:
    """Deprecated: `is_autocast_enabled("cpu")`.

    Example:
        >>> torch.is_autocast_enabled("cpu")
        False
    """
    _warn("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return rushlight.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Deprecated: `set_autocast_enabled("cpu", enabled)`.

    Args:
        enabled: whether it is on.

    Example:
        >>> torch.set_autocast_enabled("cpu", False)
    """
    _warn("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    rushlight.set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> _C.dtype:
    """Deprecated: `get_autocast_dtype("cpu")`.

    Example:
        >>> torch.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    _warn("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return rushlight.get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: _C.dtype) -> None:
    """Deprecated: `set_autocast_dtype("cpu", dtype)`.

    Args:
        dtype: the dtype.

    Example:
        >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    _warn("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    rushlight.set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> _C.dtype:
    """Deprecated: `get_autocast_dtype("cuda")`.

    Example:
        >>> torch.get_autocast_dtype("cuda")
        torch.float16
    """
    _warn("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return rushlight.get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: _C.dtype) -> None:
    """Deprecated: `set_autocast_dtype("cuda", dtype)`.

    Args:
        dtype: the dtype.

    Example:
        >>> torch.set_autocast_dtype("cuda", torch.float16)
    """
    _warn("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    rushlight.set_autocast_dtype("cuda", dtype)
