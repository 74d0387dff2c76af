"""The CPU as a device, and the statistics of its caching allocator under the names of `cuda`."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from rushlight import _C
from rushlight._lazy import lazy

if TYPE_CHECKING:
    from rushlight.types import Device

with lazy(__name__):
    from rushlight.cpu import amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_cache_limit",
    "set_device",
    "stream",
    "synchronize",
]


def is_available():
    """Whether the CPU can be used: True.

    Example:
        >>> torch.cpu.is_available()
        True
    """
    return True


def device_count():
    """The number of CPUs as devices: 1.

    Example:
        >>> torch.cpu.device_count()
        1
    """
    return 1


def current_device():
    """The name of the CPU as a device.

    Example:
        >>> torch.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Device):
    """A no-op: there is one CPU.

    Args:
        device: means nothing here.

    Example:
        >>> torch.cpu.set_device("cpu")
    """


def is_initialized():
    """Whether the CPU is ready: True.

    Example:
        >>> torch.cpu.is_initialized()
        True
    """
    return True


class Stream(_C.Stream):
    """The queue of the CPU's work; work is done when its function returns.

    Args:
        priority: means nothing here.

    Example:
        >>> with torch.cpu.stream(torch.cpu.Stream()):
        ...     print(torch.ones(2) + 1)
        tensor([2., 2.])
    """

    def __new__(cls, priority: int = -1):
        return super().__new__(cls, "cpu", priority=priority)

    def record_event(self, event=None):
        """Record an event after the work that is queued so far, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event


class Event(_C.Event):
    """An event in the CPU's work, which is always complete.

    Example:
        >>> event = torch.cpu.Event()
        >>> event.record()
        >>> event.query()
        True
    """

    def __new__(cls):
        return super().__new__(cls, "cpu")

    def record(self, stream=None):
        """Record the event after the work that a stream has queued."""
        super().record(Stream() if stream is None else stream)

    def wait(self, stream=None):
        """Let later work of a stream wait for this event."""
        super().wait(Stream() if stream is None else stream)


def current_stream(device: Device = None):
    """The only stream of the CPU.

    Args:
        device: means nothing here.

    Example:
        >>> torch.cpu.current_stream() == torch.cpu.current_stream()
        True
    """
    return Stream()


class StreamContext:
    """A context manager in which a stream of the CPU is the current one, which it always is.

    Args:
        stream: the stream.

    For an example see `cpu.Stream`.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return None


def stream(stream: Any):
    """A context manager in which work is queued on a stream: `with stream(s):`.

    Args:
        stream: the stream; None changes nothing.

    For an example see `cpu.Stream`.
    """
    return StreamContext(stream)


def synchronize(device: Device = None):
    """A no-op: work on the CPU is done when its function returns.

    Args:
        device: means nothing here.

    Example:
        >>> torch.cpu.synchronize()
    """


def memory_stats(device: Device = None):
    """The counters of the allocator, under the names of `torch.cuda.memory_stats`.

    `allocated_bytes.all.current` is what tensors hold, `reserved_bytes.all.current` what has been
    taken from the system, freed memory that is kept for reuse included.

    Args:
        device: means nothing here.

    Example:
        >>> stats = torch.cpu.memory_stats()
        >>> stats["allocated_bytes.all.peak"] >= stats["allocated_bytes.all.current"]
        True
    """
    return OrderedDict(_C._memory_stats())


def memory_allocated(device: Device = None) -> int:
    """The bytes of all tensors.

    Args:
        device: means nothing here.

    Example:
        >>> before = torch.cpu.memory_allocated()
        >>> x = torch.ones(1024)
        >>> torch.cpu.memory_allocated() - before >= 4096
        True
    """
    return memory_stats()["allocated_bytes.all.current"]


def max_memory_allocated(device: Device = None) -> int:
    """The largest number of bytes of all tensors, since the start or `reset_peak_memory_stats`.

    Args:
        device: means nothing here.

    Example:
        >>> torch.cpu.max_memory_allocated() >= torch.cpu.memory_allocated()
        True
    """
    return memory_stats()["allocated_bytes.all.peak"]


def memory_reserved(device: Device = None) -> int:
    """The bytes that the allocator has got from the system.

    Args:
        device: means nothing here.

    Example:
        >>> torch.cpu.memory_reserved() >= torch.cpu.memory_allocated()
        True
    """
    return memory_stats()["reserved_bytes.all.current"]


def max_memory_reserved(device: Device = None) -> int:
    """The largest number of bytes that the allocator has got from the system.

    Args:
        device: means nothing here.

    Example:
        >>> torch.cpu.max_memory_reserved() >= torch.cpu.memory_reserved()
        True
    """
    return memory_stats()["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Device = None):
    """Set the peaks of the memory counters to their current values.

    Args:
        device: means nothing here.

    Example:
        >>> torch.cpu.reset_peak_memory_stats()
    """
    _C._reset_memory_stats(True)


def reset_accumulated_memory_stats(device: Device = None):
    """Set the accumulated memory counters to 0.

    Args:
        device: means nothing here.

    Example:
        >>> torch.cpu.reset_accumulated_memory_stats()
    """
    _C._reset_memory_stats(False)


def empty_cache():
    """Return unused memory of the allocator to the system.

    Example:
        >>> torch.cpu.empty_cache()
    """
    _C._empty_cache()


def set_cache_limit(nbytes: int):
    """Set how many bytes of freed memory are kept; by default a quarter of the machine's memory.

    Args:
        nbytes: the number of bytes; 0 keeps nothing.

    Example:
        >>> torch.cpu.set_cache_limit(1 << 30)  # 1 GiB
    """
    _C._set_cache_limit(nbytes)
