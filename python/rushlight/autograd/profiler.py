"""The profiler's older interface: `with profile() as prof: …`, then `prof.table()`."""

from __future__ import annotations

import contextlib
from typing import Any

from rushlight.profiler._events import EventList, FunctionEvent, FunctionEventAvg, Interval
from rushlight.profiler.profiler import _Recorder, record_function

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]


class profile(_Recorder):
    """Records the ops of its `with` block on this thread; see `rushlight.profiler.profile`.

    Args:
        enabled: whether anything is recorded.
        use_cuda, use_device, use_kineto, use_cpu: accepted; what runs on CPU and GPU is recorded.
        record_shapes: whether the shapes of inputs are noted.
        with_flops: whether the operations of products and convolutions are counted.
        profile_memory: whether memory that ops take and give back is noted.
        with_stack: whether the lines of the program are noted.
        with_modules: accepted; it has no effect.
        experimental_config, acc_events, custom_trace_id_callback: accepted; they have no effect.

    Example:
        >>> with torch.autograd.profiler.profile() as profile:
        ...     _ = torch.ones(3).exp()
        >>> "aten::exp" in [row.key for row in profile.key_averages()]
        True
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback=None,
    ) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.function_events = None

    def __enter__(self):
        if self.enabled:
            self._begin()
            return self
        return None

    def __exit__(self, kind, value, trace):
        if self.enabled:
            self.function_events = self._end()

    def _events(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def table(self, *args, **kwargs):
        """The events as a table of text."""
        return self._events().table(*args, **kwargs)

    def __str__(self):
        return "<unfinished profile>" if self.function_events is None else self.table()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ):
        """The events, grouped by name and optionally by shapes or stacks."""
        return self._events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self):
        """The sum of all events as one event."""
        return self._events().total_average()

    @property
    def self_cpu_time_total(self):
        """Microseconds of all ops, without what they call."""
        return self._events().self_cpu_time_total

    def export_chrome_trace(self, path):
        """Write the events in the format of chrome://tracing."""
        self._events().export_chrome_trace(path)

    def export_stacks(self, path, metric: str = "self_cpu_time_total"):
        """Write Python stacks and their times in the format of flame graphs."""
        if not self.with_stack:
            raise AssertionError("export_stacks(): the profile was made without with_stack=True")
        self._events().export_stacks(path, metric)


@contextlib.contextmanager
def emit_nvtx(enabled: bool = True, record_shapes: bool = False):
    """RuntimeError if it is enabled: this build has no NVTX.

    Args:
        enabled: False does nothing.
        record_shapes: means nothing here.

    Example:
        >>> with torch.autograd.profiler.emit_nvtx(enabled=False):
        ...     _ = torch.ones(2) + 1
    """
    if enabled:
        raise RuntimeError("NVTX is not available: rushlight was built without it")
    yield


@contextlib.contextmanager
def emit_itt(enabled: bool = True, record_shapes: bool = False):
    """RuntimeError if it is enabled: this build has no ITT.

    Args:
        enabled: False does nothing.
        record_shapes: means nothing here.

    Example:
        >>> with torch.autograd.profiler.emit_itt(enabled=False):
        ...     _ = torch.ones(2) + 1
    """
    if enabled:
        raise RuntimeError("ITT is not available: rushlight was built without it")
    yield
