"""Docstrings of families: what arguments mean that many functions have is said once."""

from __future__ import annotations

import inspect
import re
from typing import Any, TypeVar

_Thing = TypeVar("_Thing")


def arguments(text: str) -> dict[str, str]:
    """The lines of a docstring that describe arguments, by their names."""
    found = re.finditer(r"(?m)^    (\*{0,2}\w+): .*(?:\n {5,}\S.*)*", text)
    return {m[1].lstrip("*"): m[0] for m in found}


def with_arguments(thing: _Thing, known: dict[str, str]) -> _Thing:
    """Add to the docstring of a function or a class what `known` says of its arguments.

    Arguments that the docstring describes itself stay as they are.
    """
    doc = inspect.cleandoc(thing.__doc__ or "")
    text, *behind = re.split(
        r"(?=\n\n(?:Returns|Raises|Example|For an example see)\b)", doc, maxsplit=1
    )
    text, _, own = text.partition("\n\nArgs:\n")
    lines = {name: f"    {name}: {said}" for name, said in known.items()} | arguments(own)
    taken: Any = inspect.signature(thing).parameters  # type: ignore[arg-type]
    said = [lines[name] for name in taken if name in lines]
    thing.__doc__ = "".join(["\n".join([text, *(["", "Args:", *said] if said else [])]), *behind])
    return thing


def describe_forwards(members: dict[str, Any]) -> None:
    """Methods `forward` without a text get what their class says of its purpose and shapes.

    Those of private bases, which several classes have, say that it stands there.
    """
    for name, cls in members.items():
        if not isinstance(cls, type) or name.startswith("_") or not cls.__doc__:
            continue
        for base in cls.__mro__:
            forward = vars(base).get("forward")
            if not inspect.isfunction(forward):
                continue
            if forward.__doc__ is None and base is cls:
                forward.__doc__ = _of_forward(name, cls.__doc__)
            elif forward.__doc__ is None and base.__name__.startswith("_"):
                forward.__doc__ = "What a call of the layer computes; the class says what that is."
            break


def _of_forward(name: str, text: str) -> str:
    purpose = " ".join(text.partition("\n\n")[0].split())
    shape = text.partition("\n    Shape: ")[2].partition("\n\n")[0]
    said = [f"What a call of `{name}` computes.", purpose]
    return "\n\n".join([*said, *([f"Shape: {' '.join(shape.split())}"] if shape else [])])
