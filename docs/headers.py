"""The reference of the C++ API: a page of Markdown for each public header, from its comments.

A header is read declaration by declaration: what `//` lines say above one is its text. Bodies,
private members, namespaces for inner things and what the preprocessor does are left out.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include" / "rushlight"
INNER = {"detail", "impl", "internal"}  # namespaces
HEAD = """# C++ headers

What programs include, a page each: `#include <rushlight/nn.h>`, or all: `<rushlight/rushlight.h>`.

Under `<torch/torch.h>` names are [libtorch's](../docs/from-libtorch.md).
Functions of ops stand on [the pages of ops](../ops/README.md).

"""
_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{}();]|:(?!:)', re.S
)
_MACROS = re.compile(r"\b(?:RL|TORCH|C10)_(?:API|INLINE|HOST_DEVICE|COLD|HIDDEN|NOINLINE)\b\s*")
_KIND = re.compile(r"(enum class|class|struct|enum|union)\s+(?:alignas\(\d+\)\s*)?([\w:]+)")


@dataclass
class Declaration:
    """A declaration: its text, what its comment says, and the members of a class."""

    text: str
    comment: str = ""
    members: list[Declaration] = field(default_factory=list)
    name: str = ""


def _end_of(source: str, place: int) -> int:
    """Behind the brace that closes the one at `place`."""
    depth = 0
    for token in _TOKEN.finditer(source, place):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if token[0] == "}" and depth == 0:
            return token.end()
    return len(source)


def _clean(text: str) -> str:
    """A declaration on one line, without comments and macros of the build."""
    said = re.sub(r"//[^\n]*", " ", text)
    said = " ".join(_MACROS.sub("", said).split())
    return re.sub(r"\s*([(<])\s+", r"\1", said) if said.startswith("template") else said


def _statements(source: str):
    """The declarations of a block: (comment, text before a body or the end, body or None)."""
    place, begin, depth, comment = 0, 0, 0, []
    while place < len(source):
        token = _TOKEN.search(source, place)
        if token is None:
            return
        said, place = token[0], token.end()
        before = source[begin : token.start()]
        if said.startswith("//") and depth == 0:
            if not before.strip() and begin and "\n" not in before:  # behind a declaration
                yield said[2:].strip(), "", None
                begin = place
            elif not before.strip():
                fresh = source[begin : token.start()].count("\n") > 1
                comment = [] if fresh and comment else comment
                comment.append(said[2:].strip())
                begin = place
        elif said == "(":
            depth += 1
        elif said == ")":
            depth -= 1
        elif said == "{" and depth == 0:
            end = _end_of(source, token.start())
            initialises = re.search(r"=\s*$|\breturn\b|\)\s*:\s*[^;{]*[\w>]\s*$", before)
            tail = source[end : end + 1]
            if initialises and tail in (",", ";", ")"):
                place = end
                continue
            yield " ".join(comment), before, source[token.end() : end - 1]
            comment = []
            place = begin = end + (1 if tail == ";" else 0)
        elif said == ";" and depth == 0:
            if before.strip():
                yield " ".join(comment), before, None
            comment, begin = [], place
        elif said == ":" and re.fullmatch(r"\s*(public|private|protected)\s*", before):
            yield "", before.strip() + ":", None
            comment, begin = [], place


def _of_block(source: str, access: str) -> list[Declaration]:
    """The declarations of a block, those of namespaces within it, too."""
    found: list[Declaration] = []
    for comment, text, body in _statements(source):
        said = _clean(text)
        if not said and comment and found and access != "private":
            found[-1].comment = f"{found[-1].comment} {comment}".strip()
        if said in ("public:", "private:", "protected:"):
            access = said[:-1]
            continue
        space = re.match(r"(?:inline )?namespace\b\s*([\w:]*)$", said)
        if space:
            if body is not None and not set(space[1].split("::")) & INNER and space[1]:
                found += _of_block(body, "public")
            continue
        if access == "private" or not said or re.match(r"friend\b|static_assert\b|extern\b", said):
            continue
        kind = _KIND.match(_without_template(said)) if body is not None else None
        if kind:
            inner = [] if "enum" in kind[1] else _of_block(body or "", _first_access(kind[1]))
            values = " ".join(_clean(body or "").split()) if "enum" in kind[1] else ""
            text = f"{said} {{ {values} }}" if values else said
            found.append(Declaration(text, comment, inner, kind[2].rpartition("::")[2]))
        elif not re.match(r"[A-Z][A-Z0-9_]+\(", said) and not said.startswith("#"):
            signature = re.sub(
                r"\)\s*(const|noexcept|override)?\s*:\s*\w.*$", r") \1", said
            ).strip()
            found.append(Declaration(signature, comment))
    return found


def _without_template(said: str) -> str:
    """A declaration behind its `template <…>`."""
    while said.startswith("template"):
        depth = 0
        for place, letter in enumerate(said):
            depth += {"<": 1, ">": -1}.get(letter, 0)
            if letter == ">" and depth == 0:
                said = said[place + 1 :].strip()
                break
        else:
            return said
    return said


def _first_access(kind: str) -> str:
    return "private" if kind == "class" else "public"


def declarations(text: str) -> list[Declaration]:
    """What a header declares."""
    plain = re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text)
    return _of_block(plain, "public")


def intro(text: str) -> str:
    """The comment at the head of a header."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    return " ".join(lines)


def escaped(text: str) -> str:
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        p if k % 2 else re.sub(r"([*_<\\$|\[\]])", r"\\\1", p) for k, p in enumerate(parts)
    )


def _lines(declaration: Declaration, indent: str = "") -> list[str]:
    """A declaration as C++, its comment above it."""
    said = textwrap.wrap(declaration.comment, 92 - len(indent)) if indent else []
    return [*(f"{indent}// {line}" for line in said), f"{indent}{declaration.text};"]


def _class(declaration: Declaration) -> list[str]:
    """A class: what is said of it, and its public and protected members."""
    lines = [f"## {escaped(declaration.name)}", "", escaped(declaration.comment), "", "```cpp"]
    if not declaration.members:
        return [*lines, *_lines(declaration), "```", ""]
    members = [line for m in declaration.members for line in _lines(m, "  ")]
    return [*lines, f"{declaration.text} {{", *members, "};", "```", ""]


def page(path: Path) -> str:
    """The page of a header."""
    text = path.read_text()
    name = path.relative_to(HEADERS.parent).as_posix()
    lines = [f"# {name}", "", escaped(intro(text)) or f"`#include <{name}>`", ""]
    found = declarations(text)
    for declaration in found:
        lines += _class(declaration) if declaration.name else []
    rest = [d for d in found if not d.name]
    if rest:
        lines += ["## Functions and names", ""]
    for declaration in rest:
        lines += ["```cpp", *_lines(declaration), "```", "", escaped(declaration.comment), ""]
    return "\n".join(lines)


def public_headers() -> list[Path]:
    return sorted(HEADERS.rglob("*.h"))


def generate() -> dict[str, str]:
    """File name → page."""
    pages, index = {}, [HEAD]
    for path in public_headers():
        name = path.relative_to(HEADERS).as_posix()
        file = name.replace("/", "-").removesuffix(".h") + ".md"
        pages[file] = page(path)
        said = re.split(r"(?<=[.:])\s", intro(path.read_text()))[0]
        index.append(f"- [{escaped(f'rushlight/{name}')}]({file}): {escaped(said)}")
    return {"index.md": "\n".join([*index, ""]), **pages}
