"""Events of the profiler and their sums, under the name from which older programs import them."""

from rushlight.profiler._events import EventList, FunctionEvent, FunctionEventAvg, Interval
from rushlight.profiler._table import format_memory as _format_memory  # noqa: F401
from rushlight.profiler._table import format_time as _format_time  # noqa: F401

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]
