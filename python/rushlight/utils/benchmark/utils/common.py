"""Results of timing: `TaskSpec` and `Measurement`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

import rushlight

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MAX_SIGNIFICANT_FIGURES = 4
_MIN_CONFIDENCE_INTERVAL = 25e-9
_IQR_WARN_THRESHOLD = 0.1
_IQR_GROSS_WARN_THRESHOLD = 0.25


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """A statement to time, with its labels.

    Args:
        stmt: the statement.
        setup: what runs before it.
        global_setup: accepted for statements in C++.
        label, sub_label, description, env: texts that identify the measurement in a table.
        num_threads: how many threads ops may use.

    Example:
        >>> torch.utils.benchmark.TaskSpec("x + x", setup="pass", label="sum").title
        'sum'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """A readable one-line title."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{_indent(self.stmt)}"

    def setup_str(self):
        """The setup, as it is shown."""
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{_indent(self.setup)}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        """The title and the other settings, in lines."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join("  " * bool(i) + p if p else "" for i, p in enumerate(parts)).strip()


def _indent(text):
    return "\n".join("  " + line for line in text.splitlines())


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of repeated runs: `raw_times` are seconds of `number_per_run` calls each.

    Args:
        number_per_run: calls of a run.
        raw_times: seconds of each run.
        task_spec: what was timed.
        metadata: what else is known.

    Example:
        >>> spec = torch.utils.benchmark.TaskSpec("x + x", setup="pass")
        >>> torch.utils.benchmark.Measurement(10, [0.2, 0.3, 0.4], spec).median
        0.03
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[str, Any] | None = None

    @property
    def times(self):
        """The seconds of one call, for each run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _sorted_times(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("No raw times: the measurement is empty")
        return sorted(self.times)

    @property
    def median(self):
        """The median of the times in seconds."""
        return statistics.median(self._sorted_times())

    @property
    def mean(self):
        """The mean of the times in seconds."""
        return statistics.fmean(self._sorted_times())

    @property
    def iqr(self):
        """The interquartile range in seconds."""
        times = self._sorted_times()
        return _quantile(times, 0.75) - _quantile(times, 0.25)

    @property
    def significant_figures(self):
        """How many digits of the median are significant, given the spread of the runs."""
        n = len(self._sorted_times())
        spread = max(1.645 * self.iqr / 1.349 / math.sqrt(n), _MIN_CONFIDENCE_INTERVAL)
        magnitude = math.ceil(math.log10(max(self.median, 1e-15)))
        digits = magnitude - math.floor(math.log10(spread))
        return max(1, min(digits, _MAX_SIGNIFICANT_FIGURES))

    @property
    def has_warnings(self):
        """Whether the spread of the runs is suspicious."""
        return self.iqr / self.median > _IQR_WARN_THRESHOLD if self.median else False

    @property
    def title(self):
        """The label, or the statement where there is none."""
        return self.task_spec.title

    @property
    def env(self):
        """What tells environments apart: the task's `env`."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self):
        """What a row of a table is called: the sub label, or the statement."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @property
    def stmt(self):
        """The statement that is measured."""
        return self.task_spec.stmt

    @property
    def label(self):
        """The heading of tables."""
        return self.task_spec.label

    @property
    def sub_label(self):
        """What tells rows apart."""
        return self.task_spec.sub_label

    @property
    def description(self):
        """What tells columns apart."""
        return self.task_spec.description

    @property
    def num_threads(self):
        """How many threads computed."""
        return self.task_spec.num_threads

    def meets_confidence(self, threshold=_IQR_WARN_THRESHOLD):
        """Whether there are enough runs with a small spread."""
        return len(self.raw_times) >= 2 and self.iqr / self.median < threshold

    @staticmethod
    def merge(measurements):
        """Merge measurements of equal tasks."""
        groups = defaultdict(list)
        for m in measurements:
            groups[m.task_spec].append(m)
        return [
            Measurement(
                number_per_run=1,
                raw_times=[t for m in group for t in m.times],
                task_spec=spec,
            )
            for spec, group in groups.items()
        ]

    def __repr__(self) -> str:
        unit, factor = select_unit(self.median)
        lines = [
            super().__repr__(),
            self.task_spec.summarize(),
            f"  {'Median: ' if len(self.raw_times) > 1 else ''}{self.median / factor:.2f} {unit}",
        ]
        if len(self.raw_times) > 1:
            iqr_unit, iqr_factor = select_unit(self.iqr)
            times = sorted(self.times)
            lines.append(
                f"  IQR:    {self.iqr / iqr_factor:.2f} {iqr_unit} "
                f"({_quantile(times, 0.25) / factor:.2f} to {_quantile(times, 0.75) / factor:.2f})"
            )
            runs = len(self.raw_times)
            lines.append(f"  {runs} measurements, {self.number_per_run} runs per measurement")
        else:
            lines.append(f"  1 measurement, {self.number_per_run} runs , {self.num_threads} thread")
        if self.has_warnings and self.iqr / self.median > _IQR_GROSS_WARN_THRESHOLD:
            lines.append("  WARNING: the quartiles are far apart: the machine may be busy.")
        return "\n".join(lines)


def _quantile(ordered: list[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def select_unit(t: Any) -> tuple[str, float]:
    """The unit in which to show seconds, and its length.

    Args:
        t: seconds.

    Example:
        >>> torch.utils.benchmark.select_unit(0.004)
        ('ms', 0.001)
    """
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(
        max(-3, min(0, math.floor(math.log10(t)) // 3)) if t > 0 else -3, "s"
    )
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def unit_to_english(u: Any) -> str:
    """The name of a unit.

    Args:
        u: the unit, as "ms".

    Example:
        >>> torch.utils.benchmark.unit_to_english("ms")
        'millisecond'
    """
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: Any, n: int) -> float:
    """Round x to n significant digits.

    Args:
        x: the number.
        n: how many digits stay.

    Example:
        >>> torch.utils.benchmark.trim_sigfig(123.456, 2)
        120
    """
    if n != int(n) or n < 1:
        raise ValueError(f"expected a number of digits, got {n}")
    if x == 0:
        return 0.0
    scale = 10 ** (math.floor(math.log10(abs(x))) + 1 - int(n))
    return round(x / scale) * scale


def ordered_unique(elements: Any) -> list[Any]:
    """The distinct elements in the order in which they first appear.

    Args:
        elements: the elements.

    Example:
        >>> torch.utils.benchmark.ordered_unique(["b", "a", "b"])
        ['b', 'a']
    """
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int):
    """A context manager in which ops use n threads.

    Args:
        n: how many threads.

    Example:
        >>> with torch.utils.benchmark.set_torch_threads(1):
        ...     print(torch.get_num_threads())
        1
    """
    before = rushlight.get_num_threads()
    try:
        rushlight.set_num_threads(n)
        yield
    finally:
        rushlight.set_num_threads(before)
