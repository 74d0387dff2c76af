"""The caching allocator of the GPUs: its counters, and releasing memory."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from typing import TYPE_CHECKING

from rushlight.cuda import _library as lib
from rushlight.cuda import devices

if TYPE_CHECKING:
    from typing import Any

    from rushlight.types import Device

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
]


def empty_cache():
    """Return unused memory of the allocator to the driver; a no-op without a GPU.

    Example:
        >>> torch.cuda.empty_cache()
    """
    if devices.is_available():
        lib.call("empty_cache")


def memory_stats(device: Device = None) -> dict[str, Any]:
    """The counters of a GPU's allocator by name, such as `allocated_bytes.all.current`.

    Empty without a GPU.

    Args:
        device: a GPU, or its number; None: the current one.

    Example:
        >>> if torch.cuda.is_available():
        ...     print(torch.cuda.memory_stats()["allocated_bytes.all.current"])
    """
    if not devices.is_available():
        return OrderedDict()
    lines = lib.text("memory_stats", devices.index_of(device)).splitlines()
    pairs = (line.split() for line in lines)
    return OrderedDict((name, int(value)) for name, value in pairs)


def _count(name, device):
    return memory_stats(device).get(name, 0)


def memory_allocated(device: Device = None) -> int:
    """The bytes of all tensors on a GPU.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> torch.cuda.memory_allocated() >= 0
        True
    """
    return _count("allocated_bytes.all.current", device)


def max_memory_allocated(device: Device = None) -> int:
    """The largest number of bytes of all tensors, since the start or `reset_peak_memory_stats`.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> torch.cuda.max_memory_allocated() >= 0
        True
    """
    return _count("allocated_bytes.all.peak", device)


def memory_reserved(device: Device = None) -> int:
    """The bytes that the allocator has got from the driver.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> torch.cuda.memory_reserved() >= 0
        True
    """
    return _count("reserved_bytes.all.current", device)


def max_memory_reserved(device: Device = None) -> int:
    """The largest number of bytes that the allocator has got from the driver.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> torch.cuda.max_memory_reserved() >= 0
        True
    """
    return _count("reserved_bytes.all.peak", device)


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def reset_peak_memory_stats(device: Device = None):
    """Set the peaks of the memory counters to their current values.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> torch.cuda.reset_peak_memory_stats()
    """
    if devices.is_available():
        lib.call("reset_memory_stats", devices.index_of(device), 1)


reset_max_memory_allocated = reset_peak_memory_stats
reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Device = None):
    """Set the accumulated memory counters to 0.

    Args:
        device: a GPU, or its number; None: the current one.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.reset_accumulated_memory_stats()
    """
    if devices.is_available():
        lib.call("reset_memory_stats", devices.index_of(device), 0)


def mem_get_info(device: Device = None):
    """The free and the total bytes of a GPU, as the driver reports them.

    Args:
        device: a GPU, or its number; None: the current one.

    Example:
        >>> if torch.cuda.is_available():
        ...     free, total = torch.cuda.mem_get_info()
    """
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    lib.call("memory_info", devices.index_of(device), ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def memory_summary(device: Device = None, abbreviated: bool = False):
    """The main counters as a readable table.

    Args:
        device: a GPU, or its number; None: the current one.
        abbreviated: without effect.

    Example:
        >>> if torch.cuda.is_available():
        ...     print(torch.cuda.memory_summary())
    """
    stats = memory_stats(device)
    rows = [f"{'':24}{'current':>16}{'peak':>16}{'allocated':>20}{'freed':>20}"]
    for name in ("allocated_bytes", "reserved_bytes", "active_bytes", "allocation", "segment"):
        kinds = ("all",) if abbreviated else ("all", "small_pool", "large_pool")
        for kind in kinds:
            counts = [
                stats.get(f"{name}.{kind}.{c}", 0)
                for c in ("current", "peak", "allocated", "freed")
            ]
            label = f"{name} ({kind})"
            rows.append(f"{label:32}{counts[0]:>12}{counts[1]:>16}{counts[2]:>20}{counts[3]:>20}")
    return "\n".join(rows)
