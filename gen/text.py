"""How generated files are laid out: templates, blocks and whole files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from string import Template
from typing import Any

HEADER = "// Generated from the op table by `python -m gen`. Do not edit.\n"

_LINE = re.compile(r"^( *)(?:@(!?)(\w+) )?( *)(.*)$")


def fill(template: str, **values: Any) -> list[str]:
    """The lines of a template. `$name` is a text or, alone on a line, a list of lines, indented as it is.

    A line that begins with `@name ` is there only if that is true, one that begins with `@!name ` if it is not.
    """
    lines = []
    for line in template.strip("\n").split("\n"):
        indent, unless, condition, more, rest = _LINE.findall(line)[0]
        indent += more
        if condition and bool(values[condition]) == bool(unless):
            continue
        inner = values.get(rest[1:]) if rest.startswith("$") else None
        if isinstance(inner, list):
            lines += [indent + text if text else "" for text in inner]
        else:
            lines.append(indent + Template(rest).substitute(values))
    return lines


def block(head: str, lines: list[str], end: str = "") -> list[str]:
    """`head { lines }`, one statement a line."""
    return fill("$head {\n  $lines\n}$end", head=head, lines=lines, end=end)


def commas(*parts: str | list[str]) -> str:
    """Texts and lists of texts as one list; what is empty is left out."""
    flat = [item for part in parts for item in (part if isinstance(part, list) else [part])]
    return ", ".join(item for item in flat if item)


def flag(value: bool) -> str:
    """As C++ writes it."""
    return str(value).lower()


def quoted(*texts: str) -> str:
    """As C++ writes texts that need no escapes."""
    return commas([f'"{text}"' for text in texts])


def pieces(items: list, size: int, family: Callable[[Any], str]) -> Iterator[tuple[str, list]]:
    """Runs of at most `size` items of a family, each with a name: what becomes one file."""
    for name in dict.fromkeys(map(family, items)):
        members = [item for item in items if family(item) == name]
        for number, start in enumerate(range(0, len(members), size)):
            yield f"{name}_{number}", members[start : start + size]


def source(includes: list[str], namespace: str, lines: list[str]) -> str:
    """A file: what it includes, then `lines` in a namespace. A group of includes ends with an empty string."""
    spelt = [f"#include {i}" if i.startswith("<") else f'#include "{i}"' if i else "" for i in includes]
    return "\n".join(
        [HEADER, *spelt, "", f"namespace {namespace} {{", "", *lines, "", f"}}  // namespace {namespace}", ""]
    )


def header(includes: list[str], namespace: str, lines: list[str]) -> str:
    return source(includes, namespace, lines).replace(HEADER, HEADER + "\n#pragma once\n", 1)
