"""Streams (queues of work on a GPU) and events: `torch.Stream` and `torch.Event` for CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C
from rushlight.cuda import _library as lib
from rushlight.cuda import devices

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
]


def _place(device):
    lib.require()
    return rushlight.device("cuda", devices.index_of(device))


class Stream(_C.Stream):
    """A queue of work on a GPU; work on different streams may run at the same time.

    Args:
        device: the GPU, the current one by default.
        priority: the priority of the stream's work; negative numbers are more urgent.

    Example:
        >>> stream = torch.cuda.Stream() if torch.cuda.is_available() else None
    """

    priority: int

    def __new__(cls, device: Device = None, priority: int = 0, *, _id=None, **kwargs):
        place = _place(device)
        self: Any
        if _id is None:
            self = super().__new__(cls, place, priority=priority, **kwargs)
        else:
            kind = _C._current_stream(place).device_type
            self = super().__new__(
                cls, stream_id=_id, device_index=place.index or 0, device_type=kind, **kwargs
            )
        self.priority = min(int(priority), 0)
        return self

    @property
    def cuda_stream(self):
        """The address of CUDA's own stream; 0 for the default one."""
        return self.stream_id

    def record_event(self, event=None):
        """Record an event after the work that is queued so far, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"
        )


class Event(_C.Event):
    """A point in the work of a stream.

    Args:
        enable_timing: whether `elapsed_time` may be asked.
        blocking: whether a waiting host sleeps.
        interprocess: not supported.
        external: the same as `interprocess`.

    Example:
        >>> if torch.cuda.is_available():
        ...     begin = torch.cuda.Event(enable_timing=True)
        ...     begin.record()
    """

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ):
        return super().__new__(
            cls,
            "cuda",
            enable_timing=enable_timing,
            blocking=blocking,
            interprocess=interprocess or external,
        )

    @property
    def cuda_event(self):
        """The address of CUDA's own event; 0 before it is recorded."""
        return self.event_id

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Event {self.cuda_event:#x}>"
            if self.cuda_event
            else "<torch.cuda.Event uninitialized>"
        )


def current_stream(device: Device = None) -> Stream:
    """The stream on which this thread queues work for a GPU.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> stream = torch.cuda.current_stream() if torch.cuda.is_available() else None
    """
    place = _place(device)
    return Stream(place, _id=_C._current_stream(place).stream_id)


def default_stream(device: Device = None) -> Stream:
    """The stream that is current at first.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> stream = torch.cuda.default_stream() if torch.cuda.is_available() else None
    """
    return Stream(device, _id=0)


def set_stream(stream: Any) -> None:
    """Make a stream the current one of this thread for its GPU.

    Args:
        stream: the stream.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.set_stream(torch.cuda.Stream())
    """
    if stream is not None:
        _C._set_stream(stream)


class StreamContext:
    """A context manager in which a stream and its GPU are the current ones; None is a no-op.

    Args:
        stream: the stream, or None.

    Example:
        >>> with torch.cuda.StreamContext(None):
        ...     pass
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error):
        if self.stream is not None:
            self.stream.__exit__(*error)


def stream(stream: Any) -> StreamContext:
    """A context manager in which work is queued on a stream: `with stream(s):`.

    Args:
        stream: the stream; None is a no-op.

    Example:
        >>> with torch.cuda.stream(None):
        ...     pass
    """
    return StreamContext(stream)
