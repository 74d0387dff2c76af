"""Old functions with a kind of device in their names; new ones take it as an argument."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import _C

__all__ = [
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_cpu_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype",
]


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"torch.{old} is deprecated. Please use torch.{new} instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def is_autocast_cpu_enabled() -> bool:
    """Deprecated: `is_autocast_enabled("cpu")`."""
    _warn("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return rushlight.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Deprecated: `set_autocast_enabled("cpu", enabled)`."""
    _warn("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    rushlight.set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> _C.dtype:
    """Deprecated: `get_autocast_dtype("cpu")`."""
    _warn("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return rushlight.get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: _C.dtype) -> None:
    """Deprecated: `set_autocast_dtype("cpu", dtype)`."""
    _warn("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    rushlight.set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> _C.dtype:
    """Deprecated: `get_autocast_dtype("cuda")`."""
    _warn("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return rushlight.get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: _C.dtype) -> None:
    """Deprecated: `set_autocast_dtype("cuda", dtype)`."""
    _warn("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    rushlight.set_autocast_dtype("cuda", dtype)
