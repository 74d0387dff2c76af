"""The accelerator of this machine, whatever kind it is: none, or a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight

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
    "is_available",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]


def is_available():
    """Whether there is one."""
    return rushlight.cuda.is_available()


def current_accelerator(check_available: bool = False):
    """Its device, without a number; None where this build has none (or there is none now)."""
    there = is_available() if check_available else rushlight.backends.cuda.is_built()
    return rushlight.device("cuda") if there else None


def device_count():
    """How many there are."""
    return rushlight.cuda.device_count() if is_available() else 0


def _module():
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return rushlight.cuda


def current_device_index():
    """The number of the current one; RuntimeError where there is none."""
    return _module().current_device()


current_device_idx = current_device_index


def set_device_index(device):
    """Make one the current; RuntimeError where there is none."""
    _module().set_device(device)


set_device_idx = set_device_index


def current_stream(device: Device = None):
    """The stream that work goes to; RuntimeError where there is none."""
    return _module().current_stream(device)


def synchronize(device: Device = None):
    """Wait for its work; RuntimeError where there is none."""
    _module().synchronize(device)


def empty_cache():
    """Give unused memory back; nothing where there is none."""
    if is_available():
        _module().empty_cache()


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
