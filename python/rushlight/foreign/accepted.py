"""What is accepted and does less than in PyTorch, or is refused: docs/accepted.md.

`python -m rushlight.foreign.accepted` prints the page.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator

from rushlight.foreign import MODULES, REFUSED, TABLES
from rushlight.foreign.rows import Accepted, Flags

ROWS: tuple[Accepted | Flags, ...] = tuple(
    row for table in TABLES for row in getattr(table, "ACCEPTED", ())
)


def rows_of(path: str) -> Iterator[Accepted | Flags]:
    """The rows of a function, class or module, by its path below `rushlight`."""
    for row in ROWS:
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in row.where.split()):
            yield row


_HEAD = """\
# What is accepted

This page lists names of PyTorch that rushlight accepts but that do less here, or nothing.

`python -m rushlight.foreign.accepted` writes it from `python/rushlight/foreign/tables`. With
`RUSHLIGHT_VERBOSE=1` a program prints on stderr which of the names without effect it uses.

| effect | meaning |
|---|---|
| no effect | the name is accepted and ignored |
| fixed value | the result is always the same |
| refused | any value but the default raises |
| takes effect | the name works; it is listed because similar names do not |

| function or class | names | effect | reason |
|---|---|---|---|"""
_REFUSED = """
## What is refused

Programs can import these names; a call raises RuntimeError and says why.

| module | names | reason |
|---|---|---|"""

# Paths of programs by those of the modules that they are here.
_PATHS = {row: path for path, row in MODULES.items() if isinstance(row, str)}


def _public(place: str) -> str:
    """Where programs find what is defined in a place of ours."""
    place = place.replace("foreign.absent", "{mps,mtia,xpu}")
    for module, path in _PATHS.items():
        if module.startswith("foreign.") and place.startswith(module + "."):
            place = path + place[len(module) :]
    # Modules that begin with _ are not public, but for two of PyTorch's.
    return re.sub(r"(?<![\w.])_(?!dynamo|inductor)\w+\.|\._\w+(?=\.)", "", place)


def _code(words: str) -> str:
    return ", ".join(f"`{word}`" for word in words.split())


def page() -> str:
    """The tables as Markdown."""
    lines = [_HEAD]
    for row in ROWS:
        where = _code(" ".join(_public(p).removesuffix(".*") for p in row.where.split()))
        lines.append(f"| {where} | {_code(row.names)} | {row.effect} | {row.reason} |")
    lines.append(_REFUSED)
    for refused in REFUSED:
        names = _code(f"{refused.functions} {refused.classes}")
        lines.append(f"| `{refused.where}` | {names} | {refused.why} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(page(), end="")
