"""`Compare`: prints measurements as a table, one row for each task and one column for each
description.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.utils.benchmark.utils import common

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rushlight.utils.benchmark.utils.common import Measurement

__all__ = ["Colorize", "Compare"]


class Colorize:
    """How `Compare` colours times; it has no effect.

    Example:
        >>> torch.utils.benchmark.utils.compare.Colorize.ROWWISE
        'rowwise'
    """

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements: one table for each label, in one unit.

    Args:
        results: the measurements.

    Example:
        >>> spec = torch.utils.benchmark.TaskSpec(
        ...     "x + x", setup="pass", label="sums", description="small"
        ... )
        >>> table = torch.utils.benchmark.Compare(
        ...     [torch.utils.benchmark.Measurement(10, [0.2], spec)]
        ... )
        >>> "sums" in str(table)
        True
    """

    def __init__(self, results: Sequence[Any]) -> None:
        self._results = []
        self.extend_results(results)
        self._trim = False
        self._highlight = False

    def extend_results(self, results):
        """Add measurements.

        Raises:
            ValueError: for what is none.
        """
        for r in results:
            if not isinstance(r, common.Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Show only significant digits."""
        self._trim = True

    def colorize(self, rowwise: bool = False):
        """A no-op: tables are plain."""

    def highlight_warnings(self):
        """Mark measurements whose spread is suspicious."""
        self._highlight = True

    def print(self):
        """Print the tables."""
        print(str(self))

    def __str__(self):
        merged = common.Measurement.merge(self._results)
        labels = common.ordered_unique(m.label for m in merged)
        return "\n".join(self._table([m for m in merged if m.label == x]) for x in labels)

    def _cell(self, measurement: Measurement, factor: float) -> str:
        value = measurement.median / factor
        if self._trim:
            value = common.trim_sigfig(value, measurement.significant_figures)
        mark = " (! noisy)" if self._highlight and measurement.has_warnings else ""
        return f"{value:.4g}{mark}" if self._trim else f"{value:.1f}{mark}"

    def _table(self, measurements: list[Measurement]) -> str:
        unit, factor = common.select_unit(min(m.median for m in measurements))
        columns = common.ordered_unique(m.description for m in measurements)
        lines = []
        rows = [["", *(c or "" for c in columns)]]
        for threads in common.ordered_unique(m.num_threads for m in measurements):
            mine = [m for m in measurements if m.num_threads == threads]
            rows.append([f"{threads} threads:"])
            for name in common.ordered_unique((m.env, m.as_row_name) for m in mine):
                row = [f"    {name[1]}"]
                for column in columns:
                    found = [
                        m for m in mine if (m.env, m.as_row_name, m.description) == (*name, column)
                    ]
                    row.append(self._cell(found[0], factor) if found else "")
                rows.append(row)
        count = len(columns) + 1
        widths = [max(len(r[i]) for r in rows if i < len(r)) for i in range(count)]
        for row in rows:
            cells = [
                c.ljust(w) if i == 0 else c.rjust(w)
                for i, (c, w) in enumerate(zip(row, widths, strict=False))
            ]
            lines.append("  |  ".join(cells).rstrip())
        width = max(map(len, lines))
        label = measurements[0].label or ""
        head = f"[{f' {label} ' if label else ''}]".center(width, "-")
        lines[0] = lines[0] + "\n" + "-" * width
        foot = f"Times are in {common.unit_to_english(unit)}s ({unit})."
        return "\n".join([head, *lines, "-" * width, "", foot, ""])
