"""How generated C++ is laid out: blocks and whole files."""

from __future__ import annotations

HEADER = "// Generated from the op table by `python -m gen`. Do not edit.\n"


def block(head: str, lines: list[str]) -> list[str]:
    """`head { lines }`, one statement a line."""
    return [f"{head} {{", *(f"  {line}" for line in lines), "}"]


def choice(condition: str, then: list[str], otherwise: list[str]) -> list[str]:
    """`if (condition) { then } else { otherwise }`; without an empty else."""
    if not otherwise:
        return block(f"if ({condition})", then)
    return [*block(f"if ({condition})", then)[:-1], *block("} else", otherwise)]


def namespace(name: str, lines: list[str]) -> list[str]:
    return [f"namespace {name} {{".replace("  ", " "), *lines, f"}}  // namespace {name}".rstrip()]


def source(includes: list[str], name: str, lines: list[str]) -> str:
    """A file: what it includes, then `lines` in a namespace. A group of includes ends with an empty string."""
    spelt = [f"#include {i}" if i.startswith("<") else f'#include "{i}"' if i else "" for i in includes]
    return "\n".join([HEADER, *spelt, "", f"namespace {name} {{", "", *lines, "", f"}}  // namespace {name}", ""])


def header(includes: list[str], name: str, lines: list[str]) -> str:
    return source(includes, name, lines).replace(HEADER, HEADER + "\n#pragma once\n", 1)
