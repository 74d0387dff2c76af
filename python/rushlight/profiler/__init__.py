"""`profile()`: which ops ran on this thread, how often and how long."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight import _C

__all__ = ["FunctionEvent", "profile"]


@dataclass(frozen=True)
class FunctionEvent:
    """What the calls of one op took in all."""

    key: str
    count: int
    cpu_time_total: float  # microseconds


class _Averages(list):
    def table(self, sort_by=None, row_limit=-1):
        """The events as text, longest time first; sort_by="count" by calls."""
        rows = sorted(
            self, key=lambda e: e.count if sort_by == "count" else e.cpu_time_total, reverse=True
        )
        rows = rows[:row_limit] if row_limit >= 0 else rows
        width = max([4, *(len(e.key) for e in rows)])
        lines = [f"{'Name':<{width}}  {'Calls':>8}  {'CPU total':>12}  {'CPU mean':>12}"]
        for e in rows:
            mean = e.cpu_time_total / e.count
            lines.append(
                f"{e.key:<{width}}  {e.count:>8}  {e.cpu_time_total:>10.1f}us  {mean:>10.2f}us"
            )
        return "\n".join(lines)


class profile:
    """Counts and times the ops that run inside its `with` block, on the thread that entered it.

    It sees ops below autograd: those that make up composites, and those of backward.
    """

    def __init__(self, **options):
        self._events = _Averages()

    def __enter__(self):
        _C._profile_start()
        return self

    def __exit__(self, kind, value, trace):
        entries = _C._profile_stop()
        self._events = _Averages(FunctionEvent(n, c, ns / 1000) for n, (c, ns) in entries.items())

    def key_averages(self):
        """One event for each op that ran."""
        return self._events

    def count(self, name):
        """How often an op ran."""
        return sum(e.count for e in self._events if e.key == name)
