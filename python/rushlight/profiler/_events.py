"""What a profiler saw: events, their sums by name, tables and traces.

Ops are seen below autograd, so that composites appear as the ops that they are made of, and
without their insides: the time of an op is its own. Ranges (`record_function`), calls of Python
functions and of modules hold others.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rushlight.profiler._table import format_time, table

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

_METRICS = ["self_cpu_time_total", "self_cuda_time_total"]


@dataclass(frozen=True)
class Interval:
    """A stretch of time; microseconds.

    Args:
        start: when it begins.
        end: when it ends.

    Example:
        >>> torch.autograd.profiler.Interval(2.0, 5.0).elapsed_us()
        3.0
    """

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


class _Times:
    """The names under which PyTorch shows times (microseconds); there is no device but the CPU."""

    device_time_total = cuda_time_total = self_device_time_total = self_cuda_time_total = 0.0
    device_time = cuda_time = 0.0
    device_memory_usage = self_device_memory_usage = 0
    is_async = is_remote = is_legacy = is_user_annotation = False
    node_id = -1
    use_device = None

    @property
    def cpu_time(self: Any) -> float:
        """The mean of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self: Any):
        """`cpu_time` with a unit."""
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self: Any):
        """`cpu_time_total` with a unit."""
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self: Any):
        """`self_cpu_time_total` with a unit."""
        return format_time(self.self_cpu_time_total)


class FunctionEvent(_Times):
    """One call of an op or of a function, or one range.

    Attributes:
        stack: the calls of Python functions and modules around it, the innermost first.
        module_hierarchy: the modules in whose forward it ran, the outermost first.
        is_range: whether it is a `record_function`, or a node of backward, which hold others.
        flops: additions and multiplications that it took; 0 where no rule counts them.

    Args:
        id: its number.
        name: the name of the op, function or range.
        thread: the number of the thread.
        start_us, end_us: when it began and ended, in microseconds.
        overload_name: the overload of the op.
        fwd_thread: the thread of the forward call that a node of backward belongs to.
        input_shapes: the shapes of its arguments, where they were recorded.
        stack: the calls around it, the innermost first, where they were recorded.
        scope: the kind of call, a number.
        use_device: the kind of device beside the CPU.
        cpu_memory_usage: bytes that it took from the CPU's memory.
        device_memory_usage: bytes that it took from the device's memory.
        is_async: whether it ended after it returned.
        is_remote: whether it ran in another process.
        sequence_nr: what a forward call and its node of backward have in common.
        node_id: the number of the process, -1 for this one.
        is_legacy: whether the old profiler made it.
        flops: additions and multiplications that it took.
        concrete_inputs: the numbers among its arguments, where they were recorded.
        is_user_annotation: whether it is a `record_function`.
        is_python_function: whether it is a function of Python.
        python_id, python_parent_id, python_module_id: numbers of functions and modules of Python.
        module_hierarchy: the modules in whose forward it ran.

    Example:
        >>> with torch.profiler.profile() as profile:
        ...     _ = torch.ones(3).exp()
        >>> [event.name for event in profile.events() if event.name == "aten::exp"]
        ['aten::exp']
    """

    count = 1

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str = "",
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: Sequence[Any] | None = None,
        scope: int = 0,
        use_device: Any = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        is_legacy: bool = False,
        flops: float | None = None,
        concrete_inputs: Any = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
        module_hierarchy: Any = None,
    ) -> None:
        self.id = id
        self.name = self.trace_name = name
        self.thread = thread
        self.time_range = Interval(start_us, end_us)
        self.overload_name = overload_name or ""
        self.fwd_thread = fwd_thread
        self.input_shapes = input_shapes or []
        self.stack = stack or []
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.node_id = node_id
        self.is_legacy = is_legacy
        self.flops: Any = flops or 0
        self.concrete_inputs = concrete_inputs or []
        self.is_range = self.is_user_annotation = is_user_annotation
        self.is_python_function = is_python_function
        self.python_id = python_id
        self.python_parent_id = python_parent_id
        self.python_module_id = python_module_id
        self.module_hierarchy = module_hierarchy or []
        self.input_dtypes = []
        self.structured_input_shapes = []
        self.structured_input_strides = []
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def key(self):
        """The name under which events are added up."""
        return self.name

    @property
    def activity_type(self) -> str:
        """The kind of event in a trace."""
        if self.is_python_function:
            return "python_function"
        return "user_annotation" if self.is_user_annotation else "cpu_op"

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from its begin to its end."""
        return 0 if self.is_async else self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """The same without what it calls."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that it allocates itself, less those that it frees."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Say that another event ran inside this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Say that this event ran inside another."""
        self.cpu_parent = parent

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"cpu_children={[c.id for c in self.cpu_children]}>"
        )


class FunctionEventAvg(_Times):
    """The calls of one name together.

    Args:
        key: the name; None: that of the first event that is added.

    Example:
        >>> with torch.profiler.profile() as profile:
        ...     _ = torch.ones(3).exp().exp()
        >>> (average,) = [a for a in profile.key_averages() if a.key == "aten::exp"]
        >>> average.count
        2
    """

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.overload_name = ""
        self.stack: list = []
        self.scope = None
        self.cpu_parent = None
        self.cpu_children: list[FunctionEvent] = []

    def add(self, event: FunctionEvent) -> FunctionEventAvg:
        """Count one more call."""
        if self.key is None:
            for name in ("key", "node_id", "input_shapes", "stack", "scope", "overload_name"):
                setattr(self, name, getattr(event, name))
            for name in ("is_async", "is_remote", "is_legacy", "is_user_annotation"):
                setattr(self, name, getattr(event, name))
            self.cpu_parent = event.cpu_parent
            self.cpu_children = event.cpu_children
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.flops += event.flops
        return self

    __iadd__ = add

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


def nested(events: list[FunctionEvent]) -> list[FunctionEvent]:
    """Gives events of one thread, ordered by their beginning, their parents, children and stacks.

    Those that hold others have the memory of what they hold.
    """
    events.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
    around: list[FunctionEvent] = []
    for number, event in enumerate(events):
        event.id = number
        while around and around[-1].time_range.end <= event.time_range.start:
            around.pop()
        if around:
            parent = around[-1]
            event.set_cpu_parent(parent)
            event.stack = [parent.name, *parent.stack] if _is_call(parent) else parent.stack
            if not event.module_hierarchy:
                event.module_hierarchy = parent.module_hierarchy
            if not event.is_async:
                parent.append_cpu_child(event)
        if event.is_range or _is_call(event):
            around.append(event)
    for event in reversed(events):
        if event.cpu_children:
            event.cpu_memory_usage = sum(c.cpu_memory_usage for c in event.cpu_children)
    return events


def _is_call(event: FunctionEvent) -> bool:
    return event.is_python_function


class EventList(list):
    """A list of events, or of their averages.

    Args:
        *args: what a list is made of.
        profile_memory: whether tables show memory.
        with_flops: whether tables show operations.
        use_device: the kind of device that tables show beside the CPU.

    Example:
        >>> with torch.profiler.profile() as profile:
        ...     _ = torch.ones(3).exp()
        >>> type(profile.events()).__name__
        'EventList'
    """

    def __init__(
        self,
        *args: Any,
        profile_memory: bool = False,
        with_flops: bool = False,
        use_device: Any = None,
    ) -> None:
        super().__init__(*args)
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._by_overload = False

    @property
    def self_cpu_time_total(self) -> float:
        """What all took, nothing counted twice; microseconds."""
        return sum(e.self_cpu_time_total for e in self)

    def total_average(self):
        """One entry for all."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One entry for each name.

        Args:
            group_by_input_shapes: and sizes of inputs.
            group_by_stack_n: and so many calls around it.
            group_by_overload_name: and overload.
        """
        groups: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            stack = event.stack[:group_by_stack_n] if group_by_stack_n > 0 else []
            key = (
                event.key,
                event.is_user_annotation,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(stack),
                event.overload_name if group_by_overload_name else "",
            )
            if key not in groups:
                average = groups[key] = FunctionEventAvg()
                average.add(event)
                average.stack = stack
                if not group_by_input_shapes:
                    average.input_shapes = ""
                if not group_by_overload_name:
                    average.overload_name = ""
            else:
                groups[key].add(event)
        result = EventList(
            groups.values(), profile_memory=self._profile_memory, with_flops=self._with_flops
        )
        result._by_overload = group_by_overload_name
        return result

    def count(self, name: str) -> int:
        """How often an op ran, by its name with or without "aten::"."""
        return sum(e.count for e in self if name in (e.key, e.key.removeprefix("aten::")))

    def table(
        self,
        sort_by: int | str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: int | str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The entries as text.

        Args:
            sort_by: an attribute whose largest values come first, as "cpu_time_total",
                "self_cpu_time_total", "count", "flops"; by default the order of time.
            row_limit: at most so many rows; -1 for all.
            top_level_events_only: only what ran inside nothing else.
            time_unit: "s", "ms" or "us"; by default what suits each number.
        """
        rows = list(self)
        if header is not None and not isinstance(header, str):
            raise TypeError(f"table(): header must be a str, not {type(header).__name__}")
        if sort_by is not None:
            if not isinstance(sort_by, str):
                raise AttributeError(
                    f"table(): sort_by must be the name of an attribute of events, but got "
                    f"{sort_by!r}"
                )
            sort_by = sort_by.replace("cuda", "device").replace("xpu", "device")
            if rows and not hasattr(rows[0], sort_by):
                raise AttributeError(f"table(): events have no {sort_by!r} to be sorted by")
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        if top_level_events_only:
            rows = [e for e in rows if e.cpu_parent is None]
        return table(
            rows[:row_limit] if row_limit >= 0 else rows,
            total=self.self_cpu_time_total,
            memory=self._profile_memory,
            flops=self._with_flops,
            overloads=self._by_overload,
            widths=(max_name_column_width, max_shapes_column_width, max_src_column_width),
            header=header,
            top_level=top_level_events_only,
            time_unit=time_unit,
        )

    def __str__(self):
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Write events in the format of chrome://tracing."""
        events = [
            {
                "ph": "X",
                "cat": e.activity_type,
                "name": e.trace_name,
                "ts": e.time_range.start,
                "dur": e.time_range.elapsed_us(),
                "pid": os.getpid(),
                "tid": e.thread,
                "args": _trace_arguments(e),
            }
            for e in self
        ]
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}, file)

    def supported_export_stacks_metrics(self):
        """What `export_stacks` can measure."""
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write, for flame graphs, the Python calls around events and what those took.

        Events of a profiler without stacks are left out.
        """
        if metric not in _METRICS:
            raise ValueError(f"export_stacks(): metric should be one of {_METRICS}, got {metric!r}")
        sums: defaultdict[str, float] = defaultdict(float)
        for event in self:
            if event.stack:
                names = [name.translate(_SEPARATORS) for name in reversed(event.stack)]
                sums[";".join(names)] += getattr(event, metric)
        with open(path, "w") as file:
            for stack, value in sums.items():
                if int(value) > 0:
                    print(stack, int(value), file=file)


_SEPARATORS = str.maketrans(" ;\t\n", "____")


def _trace_arguments(event: FunctionEvent) -> dict[str, Any]:
    arguments: dict[str, Any] = {"External id": event.id}
    if event.structured_input_shapes:
        arguments["Input Dims"] = event.structured_input_shapes
        arguments["Input Strides"] = event.structured_input_strides
        arguments["Input type"] = event.input_dtypes
        arguments["Concrete Inputs"] = [
            "" if value is None else str(value) for value in event.concrete_inputs
        ]
    elif event.input_shapes:
        arguments["Input Dims"] = event.input_shapes
    if event.flops:
        arguments["flops"] = event.flops
    if event.sequence_nr >= 0:
        arguments["Sequence number"] = event.sequence_nr
        arguments["Fwd thread id"] = event.fwd_thread
    if event.is_python_function:
        arguments["Python id"] = event.python_id
        arguments["Python parent id"] = event.python_parent_id
        if event.python_module_id >= 0:
            arguments["Python module id"] = event.python_module_id
    elif event.stack:
        arguments["Call stack"] = ";".join(event.stack)
    if event.module_hierarchy:
        arguments["Module Hierarchy"] = ".".join(event.module_hierarchy)
    return arguments
