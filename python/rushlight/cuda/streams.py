"""Streams, queues of work on a GPU, and events, marks in them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import rushlight
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


class Stream:
    """A queue of work on a GPU; work on different streams may run at the same time.

    Args:
        device: the GPU, the current one by default.
        priority: negative for work that goes first.
    """

    def __init__(self, device: Device = None, priority=0, *, _handle=None, **kwargs) -> None:
        if kwargs:
            raise TypeError(f"Stream() got an unexpected keyword argument {next(iter(kwargs))!r}")
        self.device_index = devices.index_of(device)
        self.priority = min(int(priority), 0)
        self.cuda_stream = (
            _handle
            if _handle is not None
            else lib.ask("stream_new", ctypes.c_void_p, self.device_index, self.priority) or 0
        )

    @property
    def device(self):
        """The GPU that it belongs to."""
        return rushlight.device("cuda", self.device_index)

    def query(self):
        """Whether all queued work is done."""
        return bool(lib.ask("stream_query", ctypes.c_int, *self._place()))

    def synchronize(self):
        """Waits until all queued work is done."""
        lib.call("stream_synchronize", *self._place())

    def wait_event(self, event):
        """Work queued from now on waits for the event."""
        if event.cuda_event:
            lib.call("stream_wait", *self._place(), ctypes.c_void_p(event.cuda_event))

    def wait_stream(self, stream):
        """Work queued from now on waits for what `stream` has queued so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """Marks the end of what is queued so far; returns the event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def _place(self):
        return self.device_index, ctypes.c_void_p(self.cuda_stream)

    def _uses(self, tensor):
        """Tensor.record_stream."""
        if not tensor.is_cuda:
            raise NotImplementedError("record_stream is for tensors on a GPU")
        address = tensor.untyped_storage().data_ptr()
        lib.call("record_use", ctypes.c_void_p(address), tensor.device.index, self._place()[1])

    def __enter__(self):
        self._outer = getattr(self, "_outer", [])
        self._outer.append(StreamContext(self))
        self._outer[-1].__enter__()
        return self

    def __exit__(self, *error):
        self._outer.pop().__exit__(*error)

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.device_index, self.cuda_stream) == (
            other.device_index,
            other.cuda_stream,
        )

    def __hash__(self):
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"
        )


class Event:
    """A mark in a stream.

    Args:
        enable_timing: whether `elapsed_time` may be asked.
        blocking: whether a waiting host sleeps.
        interprocess: not supported.
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if interprocess or external:
            raise NotImplementedError("events of several processes are not supported")
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.cuda_event = 0

    def record(self, stream=None):
        """Marks the end of what the stream (the current one by default) has queued."""
        stream = current_stream() if stream is None else stream
        if not self.cuda_event:
            self.cuda_event = lib.ask(
                "event_new", ctypes.c_void_p, stream.device_index, self.enable_timing, self.blocking
            )
        device, handle = stream._place()
        lib.call("event_record", device, ctypes.c_void_p(self.cuda_event), handle)

    def wait(self, stream=None):
        """Work that the stream queues from now on waits for this event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self):
        """Whether everything before the mark is done."""
        if not self.cuda_event:
            return True
        return bool(lib.ask("event_query", ctypes.c_int, ctypes.c_void_p(self.cuda_event)))

    def synchronize(self):
        """Waits until everything before the mark is done."""
        if self.cuda_event:
            lib.call("event_synchronize", ctypes.c_void_p(self.cuda_event))

    def elapsed_time(self, end_event):
        """Milliseconds from this mark to another."""
        if not (self.cuda_event and end_event.cuda_event):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        return lib.ask(
            "event_elapsed",
            ctypes.c_float,
            ctypes.c_void_p(self.cuda_event),
            ctypes.c_void_p(end_event.cuda_event),
        )

    def __del__(self):
        if getattr(self, "cuda_event", 0):
            lib.function("event_delete")(ctypes.c_void_p(self.cuda_event))

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Event {self.cuda_event:#x}>"
            if self.cuda_event
            else "<torch.cuda.Event uninitialized>"
        )


def current_stream(device: Device = None):
    """The stream on which this thread queues work for a GPU."""
    index = devices.index_of(device)
    return Stream(index, _handle=lib.ask("stream_current", ctypes.c_void_p, index) or 0)


def default_stream(device: Device = None):
    """The stream that is current at first."""
    return Stream(device, _handle=0)


def set_stream(stream):
    """Makes a stream the current one of this thread for its GPU."""
    if stream is not None:
        lib.call("stream_set", *stream._place())


class StreamContext:
    """In its `with` block a stream, and its GPU, are the current ones; None changes nothing."""

    def __init__(self, stream) -> None:
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self._device = devices.device(self.stream.device_index)
            self._device.__enter__()
            self._before = current_stream()
            set_stream(self.stream)

    def __exit__(self, *error):
        if self.stream is not None:
            set_stream(self._before)
            self._device.__exit__(*error)


def stream(stream):
    """`with stream(s):` queues work on s."""
    return StreamContext(stream)
