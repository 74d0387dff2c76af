"""Events of a profiler as a table."""

from __future__ import annotations

import math

__all__ = ["format_memory", "format_time", "table"]

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def format_time(us, unit=None):
    """Microseconds as text, in a unit that suits the number or in the one that is given."""
    if unit not in _UNITS:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us / _UNITS[unit]:.3f}{unit}"


def format_memory(n: int) -> str:
    """Bytes as text."""
    for size, unit in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"


def _cut(text: str, width: int) -> str:
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


def _cut_front(text: str, width: int) -> str:
    return text if width is None or len(text) <= width else "..." + text[3 - width :]


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "NaN"


def table(rows, *, total, memory, flops, overloads, widths, header, top_level, time_unit):
    """The events `rows` as lines of text; `total` is the time of all of which they are."""
    name_width, shapes_width, source_width = widths

    def time(us: float) -> str:
        return format_time(us, time_unit)

    columns = [
        ("Name", lambda e: _cut(e.key, name_width)),
        ("Self CPU %", lambda e: _percent(e.self_cpu_time_total, total)),
        ("Self CPU", lambda e: time(e.self_cpu_time_total)),
        ("CPU total %", lambda e: _percent(e.cpu_time_total, total)),
        ("CPU total", lambda e: time(e.cpu_time_total)),
        ("CPU time avg", lambda e: time(e.cpu_time)),
    ]
    if overloads:
        columns.insert(1, ("Overload Name", lambda e: e.overload_name))
    if memory:
        columns += [
            ("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)),
            ("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)),
        ]
    columns.append(("# of Calls", lambda e: str(e.count)))
    if any(e.input_shapes for e in rows):
        columns.append(("Input Shapes", lambda e: _cut(str(e.input_shapes), shapes_width)))
    counted = [e.flops for e in rows if e.flops > 0] if flops else []
    if counted:
        power = min(max(int(math.log10(min(counted)) / 3), 0), len(_FLOPS) - 1)
        columns.append(
            (
                f"Total {_FLOPS[power]}",
                lambda e: f"{e.flops / 1000**power:.3f}" if e.flops > 0 else "--",
            )
        )
    titles = [title for title, _ in columns]
    cells = [[cell(e) for _, cell in columns] for e in rows]
    sources = [[_cut_front(name, source_width) for name in e.stack] for e in rows]

    sizes = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    if any(sources):
        sizes.append(max(len(name) for names in (*sources, ["Source Location"]) for name in names))
        titles.append("Source Location")
    rule = "  ".join("-" * w for w in sizes)

    def line(texts: list[str]) -> str:
        # The last column of a table with sources is read from the left.
        parts = [t.rjust(w) for t, w in zip(texts, sizes, strict=False)]
        if len(texts) > len(columns):
            parts[-1] = texts[-1].ljust(sizes[-1])
        return "  ".join(parts).rstrip()

    lines = []
    if header is not None:
        lines += ["=" * len(rule), header]
    if top_level:
        lines += ["=" * len(rule), "Only events that ran inside no other"]
    lines += [rule, line(titles), rule]
    for row, names in zip(cells, sources, strict=True):
        lines.append(line([*row, *names[:1]]))
        lines += [line([""] * len(columns) + [name]) for name in names[1:]]
    lines += [rule, f"Self CPU time total: {time(total)}", ""]
    return "\n".join(lines)
