"""What a profiler saw: events, their sums by name, tables and traces.

Ops are seen below autograd, so that composites appear as the ops that they are made of, and
without their insides: the time of an op is its own. Ranges (`record_function`) hold others.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


@dataclass(frozen=True)
class Interval:
    """A stretch of time; microseconds."""

    start: float
    end: float

    def elapsed_us(self):
        """Its length."""
        return self.end - self.start


class _Times:
    """The names under which PyTorch shows times (microseconds); there is no device but the CPU."""

    device_time_total = cuda_time_total = self_device_time_total = self_cuda_time_total = 0.0
    device_time = cuda_time = 0.0
    device_memory_usage = self_device_memory_usage = 0
    flops = 0
    is_async = is_remote = is_legacy = is_user_annotation = False

    @property
    def cpu_time(self: Any):
        """The mean of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def self_cpu_memory_usage(self: Any):
        return self.cpu_memory_usage

    @property
    def cpu_time_str(self: Any):
        return _time(self.cpu_time)

    @property
    def cpu_time_total_str(self: Any):
        return _time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self: Any):
        return _time(self.self_cpu_time_total)


@dataclass
class FunctionEvent(_Times):
    """One call of an op, or one range."""

    name: str
    time_range: Interval
    thread: int = 0
    input_shapes: list = field(default_factory=list)
    cpu_memory_usage: int = 0
    is_range: bool = False
    id: int = 0
    cpu_parent: FunctionEvent | None = field(default=None, repr=False)
    cpu_children: list = field(default_factory=list, repr=False)
    count = 1

    @property
    def key(self):
        return self.name

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)


@dataclass
class FunctionEventAvg(_Times):
    """The calls of one name together."""

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    input_shapes: list = field(default_factory=list)
    cpu_memory_usage: int = 0

    def add(self, event):
        """Count one more call."""
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        return self


def nested(events):
    """Gives events of one thread, ordered by their beginning, their parents and children."""
    events.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
    open_ranges: list[FunctionEvent] = []
    for number, event in enumerate(events):
        event.id = number
        while open_ranges and open_ranges[-1].time_range.end <= event.time_range.start:
            open_ranges.pop()
        if open_ranges:
            event.cpu_parent = open_ranges[-1]
            open_ranges[-1].cpu_children.append(event)
        if event.is_range:
            open_ranges.append(event)
    return events


def _time(us):
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def _memory(n):
    for size, unit in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"


class EventList(list):
    """A list of events, or of their averages."""

    def __init__(
        self, *args, profile_memory: bool = False, with_flops: bool = False, use_device=None
    ) -> None:
        super().__init__(*args)
        self._profile_memory = profile_memory

    @property
    def self_cpu_time_total(self):
        """What all took, nothing counted twice; microseconds."""
        return sum(e.self_cpu_time_total for e in self)

    def total_average(self):
        """One entry for all."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n=0):
        """One entry for each name (and sizes of inputs)."""
        groups = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shapes else []
            key = (event.key, str(shapes))
            if key not in groups:
                groups[key] = FunctionEventAvg(event.key, input_shapes=shapes)
            groups[key].add(event)
        return EventList(groups.values(), profile_memory=self._profile_memory)

    def count(self, name: str):
        """How often an op ran, by its name with or without "aten::"."""
        return sum(e.count for e in self if name in (e.key, e.key.removeprefix("aten::")))

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only: bool = False,
        time_unit=None,
    ):
        """The entries as text.

        Args:
            sort_by: an attribute whose largest values come first, as "cpu_time_total",
                "self_cpu_time_total", "count"; by default the order of time.
            row_limit: at most so many rows; -1 for all.
        """
        rows = list(self)
        if sort_by is not None:
            sort_by = sort_by.replace("cuda", "device").replace("xpu", "device")
            if rows and not hasattr(rows[0], sort_by):
                raise AttributeError(f"events have no {sort_by!r} to be sorted by")
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        if top_level_events_only:
            rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
        rows = rows[:row_limit] if row_limit >= 0 else rows
        total = self.self_cpu_time_total
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if self._profile_memory:
            titles += ["CPU Mem", "Self CPU Mem"]
        titles.append("# of Calls")
        shapes = any(e.input_shapes for e in rows)
        if shapes:
            titles.append("Input Shapes")
        cells = []
        for e in rows:
            cell = [
                _cut(e.key, max_name_column_width),
                _percent(e.self_cpu_time_total, total),
                _time(e.self_cpu_time_total),
                _percent(e.cpu_time_total, total),
                _time(e.cpu_time_total),
                _time(e.cpu_time),
            ]
            if self._profile_memory:
                cell += [_memory(e.cpu_memory_usage), _memory(e.self_cpu_memory_usage)]
            cell.append(str(e.count))
            if shapes:
                cell.append(_cut(str(e.input_shapes), max_shapes_column_width))
            cells.append(cell)
        widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
        rule = "  ".join("-" * w for w in widths)
        lines = [rule, "  ".join(t.rjust(w) for t, w in zip(titles, widths, strict=True)), rule]
        lines += ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
        lines += [rule, f"Self CPU time total: {_time(total)}", ""]
        if header is not None:
            lines.insert(0, header)
        return "\n".join(lines)

    def __str__(self):
        return self.table()

    def export_chrome_trace(self, path):
        """Write events in the format of chrome://tracing."""
        events = [
            {
                "ph": "X",
                "cat": "user_annotation" if e.is_range else "cpu_op",
                "name": e.name,
                "ts": e.time_range.start,
                "dur": e.time_range.elapsed_us(),
                "pid": os.getpid(),
                "tid": e.thread,
                "args": {"Input Dims": [list(s) for s in e.input_shapes]} if e.input_shapes else {},
            }
            for e in self
        ]
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events}, file)

    def export_stacks(self, path, metric: str = "self_cpu_time_total"):
        """Write, for flame graphs, the ranges around each op and what it took."""
        if metric not in ("self_cpu_time_total", "self_cuda_time_total"):
            raise ValueError("metric should be one of: self_cpu_time_total, self_cuda_time_total")
        sums: defaultdict[str, float] = defaultdict(float)
        for event in self:
            names = []
            around = event
            while around is not None:
                names.append(around.name)
                around = around.cpu_parent
            sums[";".join(reversed(names))] += getattr(event, metric)
        with open(path, "w") as file:
            for stack, value in sums.items():
                print(stack, int(value), file=file)


def _cut(text, width):
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


def _percent(part, total):
    return f"{100 * part / total:.2f}%" if total else "NaN"
