"""The accelerator of this machine, whatever kind it is: none, or a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight
from rushlight import _C

if TYPE_CHECKING:
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
    """Whether there is one."""
    return device_count() > 0


def current_accelerator(check_available: bool = False):
    """Its device, without a number; None where this build has none (or there is none now)."""
    return None if check_available and not is_available() else _C._accelerator()


def device_count():
    """How many there are."""
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


def current_device_index():
    """The number of the current one; RuntimeError where there is none."""
    return _C._current_device(_present())


current_device_idx = current_device_index


def set_device_index(device):
    """Make one the current; RuntimeError where there is none."""
    _C._set_device(_present(device))


set_device_idx = set_device_index


def current_stream(device: Device = None):
    """The stream that work goes to; RuntimeError where there is none."""
    return _C._current_stream(_present(device))


def set_stream(stream):
    """Make a stream the current one of its device, and that device the current one."""
    _C._set_device(_present(stream.device))
    _C._set_stream(stream)


def synchronize(device: Device = None):
    """Wait for its work; RuntimeError where there is none."""
    _C._synchronize(_present(device))


def empty_cache():
    """Give unused memory back; nothing where there is none."""
    kind = current_accelerator(check_available=True)
    if kind is not None:
        getattr(rushlight, kind.type).empty_cache()


def _memory(function: str, device: Device):
    place = _present(device)
    return getattr(getattr(rushlight, place.type), function)(place)


def memory_stats(device: Device = None, /):
    """The counters of its allocator, by name; like all that follows RuntimeError without one."""
    return _memory("memory_stats", device)


def memory_allocated(device: Device = None, /):
    """Bytes of all tensors on it."""
    return _memory("memory_allocated", device)


def max_memory_allocated(device: Device = None, /):
    """The most there were."""
    return _memory("max_memory_allocated", device)


def memory_reserved(device: Device = None, /):
    """Bytes that its allocator holds."""
    return _memory("memory_reserved", device)


def max_memory_reserved(device: Device = None, /):
    """The most it held."""
    return _memory("max_memory_reserved", device)


def reset_peak_memory_stats(device: Device = None, /):
    """The most there were is what there is, from now on."""
    _memory("reset_peak_memory_stats", device)


def reset_accumulated_memory_stats(device: Device = None, /):
    """What was counted over time begins at 0 again."""
    _memory("reset_accumulated_memory_stats", device)


def get_memory_info(device: Device = None, /):
    """Bytes of its memory that are free, and all of them."""
    return _memory("mem_get_info", device)


class device_index:
    """Within it another one is current; None changes nothing."""

    def __init__(self, device) -> None:
        self.index = device

    def __enter__(self):
        if self.index is not None:
            self._before = current_device_index()
            set_device_index(self.index)

    def __exit__(self, kind, value, trace):
        if self.index is not None:
            set_device_index(self._before)
