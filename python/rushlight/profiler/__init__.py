"""`profile()`: records which ops ran on this thread, how often and how long."""

from __future__ import annotations

from rushlight.profiler import profiler
from rushlight.profiler._events import EventList, FunctionEvent, FunctionEventAvg
from rushlight.profiler.profiler import (
    ProfilerAction,
    ProfilerActivity,
    _KinetoProfile,
    kineto_available,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "_KinetoProfile",
    "kineto_available",
    "profile",
    "profiler",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
