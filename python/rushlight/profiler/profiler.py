"""`profile`: records which ops ran on this thread, when and how long, for some steps of a program.

It sees what runs on the thread that started it, backward included. Only the CPU is profiled: the
other activities show nothing, and are refused where they stand alone.
"""

from __future__ import annotations

import enum
import functools
import gzip
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from rushlight import _C
from rushlight._warnings import warn
from rushlight.profiler._calls import call_events
from rushlight.profiler._events import EventList, FunctionEvent, nested
from rushlight.profiler._ops import op_event
from rushlight.profiler._ranges import USER_SCOPE, range_event

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """The activities to record; only CPU records anything.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU
        <ProfilerActivity.CPU: 0>
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a schedule does in a step.

    Example:
        >>> torch.profiler.schedule(active=2, wait=3, warmup=1)(0)
        <ProfilerAction.NONE: 0>
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities():
    """The activities that can be recorded.

    Example:
        >>> torch.profiler.supported_activities()
        {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def kineto_available():
    """Whether PyTorch's tracing library is used: always False.

    Example:
        >>> torch.profiler.kineto_available()
        False
    """
    return False


def _default_schedule_fn(_step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A function from a step's number to an action: which steps to skip, to warm up with and to
    record.

    After `skip_first` steps: `wait` idle ones, `warmup`, `active` recorded ones, and again,
    `repeat` times (0: without end). With `skip_first_wait` the first cycle does not wait.

    Args:
        wait: how many steps are skipped in each cycle.
        warmup: how many steps are recorded and dropped.
        active: how many steps are kept.
        repeat: how many cycles there are; 0 for no end.
        skip_first: how many steps come before the first cycle.
        skip_first_wait: how many cycles go without `wait`.

    Example:
        >>> action = torch.profiler.schedule(wait=1, warmup=1, active=1)
        >>> action(2)
        <ProfilerAction.RECORD_AND_SAVE: 3>
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError("the step must not be negative")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes a trace into a folder for each cycle.

    Args:
        dir_name: the folder, which is made.
        worker_name: the beginning of files' names; None: the machine's name and the process's
            number.
        use_gzip: whether files are compressed.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> write = torch.profiler.tensorboard_trace_handler(folder, "worker")
        >>> with torch.profiler.profile(on_trace_ready=write):
        ...     _ = torch.ones(3).exp()
        >>> len(os.listdir(folder))
        1
    """

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


# The profiles that are recording, by thread: where record_function notes its ranges.
_active = threading.local()


def _recording() -> list[_Recorder]:
    if not hasattr(_active, "profiles"):
        _active.profiles = []
    return _active.profiles


class record_function:
    """A named range that profilers show: a context manager and a decorator.

    Args:
        name: the name that profilers show.
        args: a text that is kept with it.

    Example:
        >>> with torch.profiler.profile() as profile:
        ...     with torch.profiler.record_function("my step"):
        ...         _ = torch.ones(3).exp()
        >>> "my step" in [event.name for event in profile.events()]
        True
    """

    def __init__(self, name: str, args: Any = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self):
        self.begin = time.perf_counter_ns()
        return self

    def __exit__(self, kind, value, trace):
        end = time.perf_counter_ns()
        for profile in _recording():
            profile._ranges.append((self.name, max(self.begin, profile._began), end))

    def __call__(self, function: Callable[..., Any]):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapper


def note_work(name, shapes):
    """Show work beside the thread in profiles; returns a function that ends it."""
    now = time.perf_counter_ns()
    noted = [[name, max(now, profile._began), now, shapes] for profile in _recording()]
    for profile, work in zip(_recording(), noted, strict=True):
        profile._works.append(work)

    def on_end():
        for work in noted:
            work[2] = time.perf_counter_ns()

    return on_end if noted else None


class _Recorder:
    """Notes ops and ranges between `_begin` and `_end`, on the calling thread.

    What is asked for stands in attributes: record_shapes, profile_memory, with_stack, with_flops
    and with_modules.
    """

    record_shapes = profile_memory = with_stack = with_flops = with_modules = False

    def _begin(self) -> None:
        self._ranges = []
        self._works = []  # [name, begin, end, shapes] of what went on beside the thread
        self._began = time.perf_counter_ns()
        _recording().append(self)
        _C._profile_start(
            self.record_shapes or self.with_flops,
            self.profile_memory,
            self.with_stack,
            self.with_modules,
        )

    def _end(self) -> EventList:
        events = []
        if self in _recording():  # or `autograd._disable_profiler` has ended it
            ops, ranges, calls = _C._profile_stop()
            _recording().remove(self)
            thread = threading.get_ident()
            events += call_events(calls, thread)
            events += [op_event(op, thread, self.record_shapes, self.with_flops) for op in ops]
            annotations = [(*r, None, USER_SCOPE, -1) for r in self._ranges]
            events += [range_event(r, thread) for r in [*annotations, *ranges]]
            events += [
                FunctionEvent(
                    0, name, thread, begin / 1e3, end / 1e3, input_shapes=shapes, is_async=True
                )
                for name, begin, end, shapes in self._works
            ]
            nested(events)
            if not self.with_modules:
                for event in events:
                    event.module_hierarchy = []
        return EventList(events, profile_memory=self.profile_memory, with_flops=self.with_flops)


class profile(_Recorder):
    """Records the ops that run inside its `with` block, or between `start()` and `stop()`.

    Args:
        activities: where to look, of `ProfilerActivity`; CPU must be among them. All by default.
        schedule: which steps to record, by what `schedule()` returns; call `step()` after each.
        on_trace_ready: called with the profile after each recorded cycle.
        record_shapes: keep the sizes of inputs, and of arguments that are no tensors the values.
        profile_memory: keep the bytes of new results.
        with_stack: record the calls of Python functions and modules, and give every event those
            around it.
        with_flops: count the additions and multiplications of products, convolutions, `add` and
            `mul`.
        with_modules: give every event the modules in whose forward it ran.
        experimental_config: accepted, without effect.
        execution_trace_observer: accepted, without effect.
        acc_events: accepted, without effect.
        use_cuda: deprecated.
        custom_trace_id_callback: accepted, without effect.
        post_processing_timeout_s: accepted, without effect.

    The other arguments are accepted.

    Example:
        >>> with torch.profiler.profile() as recorded:
        ...     x = torch.ones(2) + 1
        >>> any(event.key == "aten::add" for event in recorded.key_averages())
        True
    """

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Any = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: int | None = None,
    ) -> None:
        self.activities = supported_activities() if activities is None else set(activities)
        unknown = [a for a in self.activities if not isinstance(a, ProfilerActivity)]
        if unknown or not self.activities:
            raise AssertionError(
                "profile(): no valid profiler activities: expected a set of some of "
                f"ProfilerActivity ({', '.join(a.name for a in ProfilerActivity)}), but got "
                f"{activities!r}"
            )
        self.schedule = schedule if schedule is not None else _default_schedule_fn
        self._has_schedule = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._events = None
        self._is_recording = False
        self._step_range = None
        self._metadata = {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, trace):
        self.stop()

    def start(self):
        """Start the profiler.

        Raises:
            AssertionError: the CPU, which alone is profiled, is not among the activities.
        """
        if not self.activities & supported_activities():
            names = ", ".join(sorted(a.name for a in self.activities))
            raise AssertionError(
                f"profile(): no activities that show anything: {names} alone cannot be profiled, "
                "add ProfilerActivity.CPU"
            )
        self._follow(self.current_action)
        if self._has_schedule:
            self._open_step()

    def stop(self):
        """Stop the profiler and hand over the recorded events."""
        self._close_step()
        if self._is_recording:
            self._finish()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self):
        """End a step of the program; the schedule chooses the action for the next step."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE and self._is_recording:
            self._finish()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._follow(self.current_action)
        if self._has_schedule:
            self._open_step()

    def _follow(self, action: ProfilerAction) -> None:
        wanted = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wanted and not self._is_recording:
            self._begin()
            self._is_recording = True
        elif not wanted and self._is_recording:
            warn("Incorrect schedule: a record step is followed by none")
            self._finish()

    def _finish(self) -> None:
        self._is_recording = False
        self._events = self._end()

    def _open_step(self) -> None:
        self._step_range = record_function(f"ProfilerStep#{self.step_num}")
        self._step_range.__enter__()

    def _close_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    @property
    def profiler(self):
        """The profile itself, for older programs."""
        return self

    def events(self):
        """The last recorded events in the order of time.

        Raises:
            AssertionError: nothing was recorded yet.
        """
        if self._events is None:
            raise AssertionError("the profiler has not recorded anything yet")
        return self._events

    @property
    def function_events(self):
        """The events, as a list; None before the end."""
        return self.events()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ):
        """The events, grouped by name and optionally by shapes or stacks."""
        return self.events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def count(self, name: str):
        """How many times an op ran."""
        return self.events().count(name)

    def total_average(self):
        """The sum of all events as one event."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self):
        """Microseconds of all ops, without what they call."""
        return self.events().self_cpu_time_total

    def table(self, *args, **kwargs):
        """The events as a table of text."""
        return self.events().table(*args, **kwargs)

    def add_metadata(self, key, value):
        """Add a string to the trace."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key, value):
        """Add a JSON value, given as text, to the trace."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable, activities):
        """A no-op: what is recorded does not change during a run."""

    def export_chrome_trace(self, path):
        """Write the events in the format of chrome://tracing; gzipped if the name ends with .gz."""
        plain = path.removesuffix(".gz")
        self.events().export_chrome_trace(plain)
        if self._metadata:
            with open(plain) as file:
                content = json.load(file)
            content.update(self._metadata)
            with open(plain, "w") as file:
                json.dump(content, file)
        if plain != path:
            with open(plain, "rb") as source, gzip.GzipFile(path, "wb") as target:
                shutil.copyfileobj(source, target)
            os.remove(plain)

    def export_stacks(self, path, metric: str = "self_cpu_time_total"):
        """Write Python stacks and their times in the format of flame graphs."""
        if not self.with_stack:
            raise AssertionError("export_stacks(): the profile was made without with_stack=True")
        self.events().export_stacks(path, metric)


class _KinetoProfile(profile):
    """`profile` by the name of its base in PyTorch.

    For an example see `profiler.profile`.
    """
