"""The accelerator of this machine, whatever kind it is: none, or a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight
from rushlight import _C

if TYPE_CHECKING:
    from typing import Any

    from rushlight.types import Device

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available():
    """Whether this machine has an accelerator.

    Example:
        >>> isinstance(torch.accelerator.is_available(), bool)
        True
    """
    return device_count() > 0


def current_accelerator(check_available: bool = False):
    """The accelerator as a device without an index; None if this build or machine has none.

    Args:
        check_available: whether to return None where no device is there.

    Example:
        >>> device = torch.accelerator.current_accelerator(check_available=True)
    """
    return None if check_available and not is_available() else _C._accelerator()


def device_count():
    """The number of accelerators.

    Example:
        >>> torch.accelerator.device_count() >= 0
        True
    """
    kind = _C._accelerator()
    if kind is None:
        return 0
    # Its module says why where its library cannot be loaded.
    return getattr(rushlight, kind.type).device_count()


def _present(device: Device = None):
    """A device of the accelerator: None for the current one, a number, or what names it."""
    kind = current_accelerator(check_available=True)
    if kind is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if device is None or isinstance(device, int):
        return rushlight.device(kind.type, device) if device is not None else kind
    place = rushlight.device(device)
    if place.type != kind.type:
        raise ValueError(f"{place} doesn't match the current accelerator {kind}.")
    return place


def current_device_index() -> int:
    """The index of the current accelerator; RuntimeError if there is none.

    For an example see `accelerator.device_index`.
    """
    return _C._current_device(_present())


current_device_idx = current_device_index


def set_device_index(device: Device) -> None:
    """Make an accelerator the current one; RuntimeError if there is none.

    For an example see `accelerator.device_index`.

    Args:
        device: a device, or its number.
    """
    _C._set_device(_present(device))


set_device_idx = set_device_index


def current_stream(device: Device = None) -> rushlight.Stream:
    """The stream that new work is queued on; RuntimeError if there is no accelerator.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     stream = torch.accelerator.current_stream()
    """
    return _C._current_stream(_present(device))


def set_stream(stream: Any) -> None:
    """Make a stream the current one of its device, and that device the current device.

    Args:
        stream: the stream.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.set_stream(torch.Stream())
    """
    _C._set_device(_present(stream.device))
    _C._set_stream(stream)


def synchronize(device: Device = None):
    """Wait until an accelerator has done its work; RuntimeError if there is none.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.synchronize()
    """
    _C._synchronize(_present(device))


def empty_cache():
    """Return unused memory of the allocator to the driver; a no-op without an accelerator.

    Example:
        >>> torch.accelerator.empty_cache()
    """
    kind = current_accelerator(check_available=True)
    if kind is not None:
        getattr(rushlight, kind.type).empty_cache()


def _memory(function: str, device: Device):
    place = _present(device)
    return getattr(getattr(rushlight, place.type), function)(place)


def memory_stats(device: Device = None, /) -> dict[str, Any]:
    """The counters of the allocator by name; RuntimeError without an accelerator.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     peak = torch.accelerator.memory_stats()["allocated_bytes.all.peak"]
    """
    return _memory("memory_stats", device)


def memory_allocated(device: Device = None, /) -> int:
    """The bytes of all tensors on an accelerator.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     used = torch.accelerator.memory_allocated()
    """
    return _memory("memory_allocated", device)


def max_memory_allocated(device: Device = None, /) -> int:
    """The largest number of bytes that tensors on an accelerator have had.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     used = torch.accelerator.max_memory_allocated()
    """
    return _memory("max_memory_allocated", device)


def memory_reserved(device: Device = None, /) -> int:
    """The bytes that the allocator of an accelerator holds.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     held = torch.accelerator.memory_reserved()
    """
    return _memory("memory_reserved", device)


def max_memory_reserved(device: Device = None, /) -> int:
    """The largest number of bytes that the allocator of an accelerator has held.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     held = torch.accelerator.max_memory_reserved()
    """
    return _memory("max_memory_reserved", device)


def reset_peak_memory_stats(device: Device = None, /):
    """Set the peaks of the memory counters to their current values.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.reset_peak_memory_stats()
    """
    _memory("reset_peak_memory_stats", device)


def reset_accumulated_memory_stats(device: Device = None, /):
    """Set the accumulated memory counters to 0.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.reset_accumulated_memory_stats()
    """
    _memory("reset_accumulated_memory_stats", device)


def get_memory_info(device: Device = None, /) -> tuple[int, int]:
    """The free bytes and all bytes of an accelerator's memory.

    Args:
        device: a device, or its number; None: the current one.

    Example:
        >>> if torch.accelerator.is_available():
        ...     free, total = torch.accelerator.get_memory_info()
    """
    return _memory("mem_get_info", device)


class device_index:
    """A context manager in which another accelerator is the current one; None changes nothing.

    Args:
        device: a number, or None.

    Example:
        >>> if torch.accelerator.device_count() > 1:
        ...     with torch.accelerator.device_index(1):
        ...         print(torch.accelerator.current_device_index())
    """

    def __init__(self, device: Device) -> None:
        self.index = device

    def __enter__(self):
        if self.index is not None:
            self._before = current_device_index()
            set_device_index(self.index)

    def __exit__(self, kind, value, trace):
        if self.index is not None:
            set_device_index(self._before)
