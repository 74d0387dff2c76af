"""Expressions of entries: C++ over public ops. They are read once, for the names that they use and how."""

from __future__ import annotations

import ast
import re
from functools import cache

# Calls on a tensor that need none of its elements, so that its metadata are enough.
_META = ("sizes", "dim", "numel", "dtype", "scalar_type", "size", "device", "options")
_META += ("is_complex", "strides", "storage_offset")
_NAME = re.compile(r'"[^"]*"|(\.|::|->)?\s*(?<!\w)([A-Za-z_]\w*)(?!\w|::)(?=(\s*\()?)(?:\s*\.\s*(\w+)\s*\()?')
# What C++ and Python both read, and read alike.
_SHARED = (ast.Expression, ast.Call, ast.Attribute, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Load)
_SHARED += (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub)


@cache
def names(text: str) -> dict[str, set[str]]:
    """Name → how it occurs, but for members: "called", asked for its "meta" data, or "whole"."""
    found: dict[str, set[str]] = {}
    for member, name, call, asked in _NAME.findall(text):
        if name and not member:
            found.setdefault(name, set()).add("called" if call else "meta" if asked in _META else "whole")
    return found


def is_shared(text: str) -> bool:
    """Whether Python reads an expression as C++ does."""
    try:
        return all(isinstance(node, _SHARED) for node in ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError:
        return False


def cpp(text: str) -> str:
    """A shared expression as C++ has it."""
    return re.sub(r"\bnone\b", "std::nullopt", text)
