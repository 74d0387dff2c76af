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

# Where programs find what stands in modules of this package.
_PATHS = {"foreign.absent": "{mps,mtia,xpu}", "foreign.extension": "_C"}
for _path, _row in MODULES.items():
    if isinstance(_row, str):
        _PATHS[_row] = _path
    else:
        for _place, _words in _row.items():
            for _word in _words.split() if _place not in _PATHS else ():
                _PATHS[f"{_place}.{_word.rpartition('=')[2]}"] = (
                    f"{_path}.{_word.partition('=')[0]}"
                )


def _public(place: str) -> str:
    """Where programs find what is defined in a place of ours."""
    if place.startswith("foreign."):
        start = place
        while start not in _PATHS:
            start = start.rpartition(".")[0]
        place = _PATHS[start] + place[len(start) :]
    # Modules that begin with _ are not public, but for two of PyTorch's.
    place = re.sub(r"^_(?!dynamo|inductor)\w+\.([a-z]\w*\.)?", "", place)
    return re.sub(r"\._\w+(?=\.)", "", place)


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
