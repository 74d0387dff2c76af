"""The source of functions of Python, and what they take and return."""

from __future__ import annotations

import ast
import inspect
import typing
from typing import Any

from rushlight.jit import _meanings
from rushlight.jit.frontend import NotSupportedError


def source_of(function: Any) -> tuple[str, str, int]:
    """The text of a function from its `def` on, its file and the number of its first line."""
    if getattr(function, "__name__", "") == "<lambda>":
        raise NotSupportedError("a lambda cannot be compiled: name a function")
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or ""
    except (OSError, TypeError) as error:
        raise OSError(
            f"Can't get source for {function}: jit.script compiles the text of functions, and this "
            f"one has none ({error})"
        ) from None
    indent = len(lines[0]) - len(lines[0].lstrip())
    cut = [line[indent:] if not line[:indent].strip() else line for line in lines]
    skipped = next((i for i, line in enumerate(cut) if line.startswith("def ")), None)
    if skipped is None:
        kind = "async def" if any(line.startswith("async def") for line in cut) else "no def"
        raise NotSupportedError(f"the source of {function} begins with {kind}: {file}:{first}")
    return "".join(cut[skipped:]), file, first + skipped


def hints_of(function: Any) -> dict[str, Any]:
    """Its annotations as types; those that cannot be evaluated are left out."""
    try:
        return typing.get_type_hints(function)
    except Exception:  # names that exist for type checkers alone
        given = getattr(function, "__annotations__", {})
        return {name: hint for name, hint in given.items() if not isinstance(hint, str)}


def header_of(function: Any) -> tuple[str, str, int]:
    """`source_of` without the statements, but with the types that comments say."""
    source, file, line = source_of(function)
    first = ast.parse(source).body[0].body[0]
    lines = source.splitlines()
    head = lines[: first.lineno - 1]
    if first.lineno == 1 or not head:
        head = [lines[0][: first.col_offset]]
    comments = [text for text in head[1:] if text.lstrip().startswith("# type:")]
    kept = [text for text in head if text not in comments]
    body = [*(f"    {text.strip()}" for text in comments), "    pass"]
    return "\n".join([*kept, *body]) + "\n", file, line


def signature_of(function: Any, owner: str | None = None) -> tuple[list[tuple], str]:
    """Rows (name, type, None) of what an unused function takes, and the type that it returns.

    A type that programs do not have is Any; without an annotation it is a tensor.
    """
    hints = hints_of(function)

    def text(name):
        return (_meanings.type_text(hints[name]) or "Any") if name in hints else "Any"

    rows = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        is_object = owner is not None and not rows
        default = None if parameter.default is parameter.empty else (parameter.default,)
        rows.append((name, owner if is_object else text(name), default))
    return rows, text("return") if "return" in hints else "Tensor"
