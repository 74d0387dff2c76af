"""The source of functions of Python, and what they take and return."""

from __future__ import annotations

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


def signature_of(function: Any, owner: str | None = None) -> tuple[list[tuple], str]:
    """Rows (name, type, (default,) or None) of what it takes, and the type that it returns.

    Without an annotation it is a tensor, as everywhere in programs.
    """
    hints = hints_of(function)

    def text(name):
        found = _meanings.type_text(hints[name]) if name in hints else "Tensor"
        if found is None:
            raise RuntimeError(
                f"Unknown type name '{hints[name]}' of '{name}' in {function.__qualname__}()"
            )
        return found

    rows = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise NotSupportedError(
                f"{function.__qualname__}() takes any number of arguments, which programs cannot"
            )
        is_object = owner is not None and not rows
        default = None if parameter.default is parameter.empty else (parameter.default,)
        rows.append((name, owner if is_object else text(name), default))
    return rows, text("return")
