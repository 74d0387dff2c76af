"""How generated files are laid out: templates, blocks and whole files.

A template is an f-string of C++ (or Python) that `lines` takes apart. `{each(items)}`, alone on a line, gives each item
a line of its own; a line with `{only(condition)}` is there only if that is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from textwrap import dedent
from typing import Any

HEADER = "// Generated from the op table by `python -m gen`. Do not edit.\n"
# At the head of a file whose functions need not use all that they are given.
UNUSED = '#pragma GCC diagnostic ignored "-Wunused-parameter"'
SHORT = 108  # columns of what stands on one line, where it is indented little
_NEXT, _DROP = "\1", "\2"  # what stands for a new line, and for none at all


def each(items: Iterable[str]) -> str:
    return "".join(_NEXT + item for item in items) or _DROP


def only(condition: object) -> str:
    return "" if condition else _DROP


def lines(template: str) -> list[str]:
    """The lines of a template, indented as they are beside each other."""
    made = []
    for line in dedent(template).strip("\n").split("\n"):
        indent, *items = line.split(_NEXT)
        if _DROP not in line:
            made += [indent + item if item else "" for item in items] if items else [line]
    return made


def flat(parts: Iterable[Iterable[str]]) -> list[str]:
    return [line for part in parts for line in part]


def block(head: str, inside: list[str], end: str = "") -> list[str]:
    """`head { inside }`, one statement a line; on one line where that is short."""
    short = f"{head} {{ {inside[0]} }}{end}" if len(inside) == 1 and inside[0].endswith(";") else ""
    if short and len(short) <= SHORT:
        return [short]
    return [f"{head} {{", *(f"  {line}" if line else "" for line in inside), f"}}{end}"]


def filled(items: Iterable[str]) -> list[str]:
    """Items of data, as many on a line as are short together."""
    made: list[str] = []
    for item in items:
        if made and len(made[-1]) + len(item) < SHORT:
            made[-1] += f" {item}"
        else:
            made.append(item)
    return made


def braced(said: list[str]) -> str:
    """An item of data, up to what is as if nothing were said."""
    while said and said[-1] in ("{}", "false", "nullptr"):
        said.pop()
    return f"{{{commas(said)}}}"


def array(head: str, items: Iterable[str]) -> list[str]:
    """The definition of an array."""
    inside = [f"{item}," for item in items]
    whole = f"{head} = {{{' '.join(inside).removesuffix(',')}}};"
    return [whole] if len(whole) <= SHORT else block(f"{head} =", filled(inside), end=";")


class Pool:
    """Lists of items as parts of one constant array, where what several have in common stands once."""

    def __init__(self, element: str, name: str, lists: Iterable[tuple[str, ...]]) -> None:
        self._head, self._name, kept = f"constexpr {element} {name}[]", name, dict.fromkeys(lists)
        # A letter stands for an item, so that a part is found as text is.
        self._letters = {item: chr(i) for i, item in enumerate(dict.fromkeys(item for part in kept for item in part))}
        self._text = ""
        for part in map(self._spelt, sorted(kept, key=len, reverse=True)):
            self._text += "" if part in self._text else part

    def _spelt(self, items: tuple[str, ...]) -> str:
        return "".join(self._letters[item] for item in items)

    def start(self, items: tuple[str, ...]) -> str:
        """The address of a list."""
        return f"{self._name} + {self._text.index(self._spelt(items))}" if items else "nullptr"

    def part(self, items: tuple[str, ...]) -> str:
        """The list."""
        return f"{{{self.start(items)}, {len(items)}}}" if items else "{}"

    def definition(self) -> list[str]:
        items = list(self._letters)
        return array(self._head, (items[ord(letter)] for letter in self._text))


def when(condition: object, head: str, *inside: str) -> str:
    """A block in a template, which is there only if that is true."""
    return each(block(head, list(inside)) if condition else [])


def commas(*parts: str | Iterable[str]) -> str:
    """Texts and lists of texts as one list; what is empty is left out."""
    flat = [item for part in parts for item in ([part] if isinstance(part, str) else part)]
    return ", ".join(filter(None, flat))


def flag(value: object) -> str:
    """As C++ writes it."""
    return "true" if value else "false"


def pieces(items: list, size: int, family: Callable[[Any], str]) -> Iterator[tuple[str, list]]:
    """Runs of at most `size` items of a family, each with a name: what becomes one file."""
    for name in dict.fromkeys(map(family, items)):
        members = [item for item in items if family(item) == name]
        for number, start in enumerate(range(0, len(members), size)):
            yield f"{name}_{number}", members[start : start + size]


def source(includes: list[str], namespace: str, inside: list[str], pragma: str = "") -> str:
    """A file: what it includes, then lines in a namespace. A group of includes ends with an empty string."""
    spelt = [f"#include {i}" if i.startswith("<") else f'#include "{i}"' if i else "" for i in includes]
    body = ["", f"namespace {namespace} {{", "", *inside, "", f"}}  // namespace {namespace}", ""]
    return "\n".join([HEADER + pragma, *spelt, *body])


def header(includes: list[str], namespace: str, inside: list[str]) -> str:
    return source(includes, namespace, inside, "\n#pragma once\n")
