"""Counters and events of a program: statistics over windows of time, and event handlers."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Any

__all__ = [
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

data_value_t = str | float | int | bool


class Aggregation(Enum):
    """How a statistic aggregates the values of a window.

    Example:
        >>> torch.monitor.Aggregation.MEAN.name
        'MEAN'
    """

    VALUE = 0
    MEAN = 1
    COUNT = 2
    SUM = 3
    MAX = 4
    MIN = 5


class Event:
    """An event: a name, a time, and data of strings and numbers.

    Args:
        name: what kind of event it is.
        timestamp: when it happened.
        data: strings, numbers and bools by name.

    For an example see `monitor.log_event`.
    """

    def __init__(
        self, name: str, timestamp: datetime.datetime, data: dict[str, data_value_t]
    ) -> None:
        if not all(isinstance(value, data_value_t) for value in data.values()):
            raise TypeError("the data of an event are strings, numbers and bools")
        self.name, self.timestamp, self.data = name, timestamp, data

    def __repr__(self) -> str:
        return f"Event({self.name!r}, {self.timestamp!r}, {self.data!r})"


class EventHandlerHandle:
    """The handle of a registered event handler, for unregistering it.

    Args:
        callback: the handler.

    For an example see `monitor.log_event`.
    """

    def __init__(self, callback: Callable[[Event], Any]) -> None:
        self.callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], Any]) -> EventHandlerHandle:
    """Call `callback(event)` for every event from now on.

    Args:
        callback: called with each `Event`.

    Returns:
        the handle for `unregister_event_handler`.

    For an example see `monitor.log_event`.
    """
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Unregister an event handler.

    Args:
        handler: what `register_event_handler` gave.

    For an example see `monitor.log_event`.
    """
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Pass an event to every handler.

    Args:
        event: what every handler is called with.

    Example:
        >>> from datetime import datetime
        >>> from rushlight import monitor
        >>> handle = monitor.register_event_handler(lambda event: print(event.name, event.data))
        >>> monitor.log_event(monitor.Event("epoch", datetime.now(), {"loss": 0.5}))
        epoch {'loss': 0.5}
        >>> monitor.unregister_event_handler(handle)
    """
    for handle in list(_handlers):
        handle.callback(event)


class Stat:
    """A statistic of values over windows of time, or of a number of values; each window becomes an
    event.

    Args:
        name: the first part of the names of the event's data.
        aggregations: the statistics that an event reports.
        window_size: how long a window is, a timedelta.
        max_samples: how many values a window holds at most; None means any number.

    Example:
        >>> from datetime import timedelta
        >>> from rushlight.monitor import Aggregation, Stat
        >>> stat = Stat("loss", [Aggregation.SUM, Aggregation.COUNT], timedelta(minutes=1))
        >>> stat.add(2.0)
        >>> stat.count
        1
    """

    def __init__(
        self,
        name: str,
        aggregations: list[Aggregation],
        window_size: datetime.timedelta,
        max_samples: int | None = None,
    ) -> None:
        self.name = name
        self._aggregations = list(aggregations)
        self._window = window_size.total_seconds()
        self._most = max_samples
        self._lock = threading.Lock()
        self._last = dict.fromkeys(self._aggregations, 0.0)
        self._begin()

    def _begin(self) -> None:
        self._values: list[float] = []
        self._start = time.monotonic()

    def _results(self) -> dict[Aggregation, float]:
        values = self._values
        known = {
            Aggregation.VALUE: values[-1] if values else 0.0,
            Aggregation.MEAN: sum(values) / len(values) if values else 0.0,
            Aggregation.COUNT: float(len(values)),
            Aggregation.SUM: sum(values),
            Aggregation.MAX: max(values, default=0.0),
            Aggregation.MIN: min(values, default=0.0),
        }
        return {kind: known[kind] for kind in self._aggregations}

    def _end(self) -> None:
        """Closes a window that is over, and tells of it."""
        full = self._most is not None and len(self._values) >= self._most
        if self._values and (full or time.monotonic() - self._start >= self._window):
            self._last = self._results()
            data = {f"{self.name}.{k.name.lower()}": v for k, v in self._last.items()}
            self._begin()
            now = datetime.datetime.now(datetime.timezone.utc)
            log_event(Event("torch.monitor.Stat", now, dict(data)))

    def add(self, v: float) -> None:
        """Add a value."""
        with self._lock:
            self._end()
            self._values.append(float(v))
            self._end()

    def get(self) -> dict[Aggregation, float]:
        """The aggregates of the last closed window."""
        with self._lock:
            self._end()
            return dict(self._last)

    @property
    def count(self) -> int:
        """The number of values in the open window."""
        return len(self._values)


class TensorboardEventHandler:
    """Writes events to a `utils.tensorboard.SummaryWriter` as scalars.

    Args:
        writer: the writer.

    For an example see `monitor.log_event`.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        for name, value in event.data.items():
            if isinstance(value, str):
                self._writer.add_text(name, value, walltime=event.timestamp.timestamp())
            else:
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
