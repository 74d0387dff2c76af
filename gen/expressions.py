"""The language of expressions in entries: Python's syntax, read once as a tree, from which C++ is printed.

Names, calls, methods, numbers and operators mean in C++ what they say. What C++ spells otherwise is `a if c else b`,
`and`, `or`, `not`; `{1, 2}` and `(a, b)` are its lists, `f(x)[0]` is the first of several results, `none` is None, and
`grad_values or none` is a gradient that may be undefined. Before an expression may stand others, which have names:
`out, mean = f(x); g(out, mean)`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Container
from functools import cache, cached_property

from gen.text import commas


class TableError(Exception):
    """An entry of the op table that says something impossible."""


# Calls on a tensor that need none of its elements, so that its metadata are enough.
_META = ("sizes", "dim", "numel", "dtype", "scalar_type", "size", "device", "options")
_META += ("is_complex", "strides", "storage_offset")
# Operators in C++, and how tightly they bind.
_CHOICE, _SIGN = 0, 8
_BINARY: dict[type[ast.AST], tuple[str, int]] = {
    ast.Or: ("||", 1),
    ast.And: ("&&", 2),
    ast.BitOr: ("|", 3),
    ast.Eq: ("==", 4),
    ast.NotEq: ("!=", 4),
    ast.Lt: ("<", 5),
    ast.LtE: ("<=", 5),
    ast.Gt: (">", 5),
    ast.GtE: (">=", 5),
    ast.Add: ("+", 6),
    ast.Sub: ("-", 6),
    ast.Mult: ("*", 7),
    ast.Div: ("/", 7),
}
_SIGNS: dict[type[ast.AST], str] = {ast.Not: "!", ast.USub: "-"}


class Expression:
    """What an entry computes."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            *before, last = ast.parse(text).body
        except (SyntaxError, ValueError):
            raise TableError(f"not an expression: {text!r}") from None
        self.before = [part for part in before if isinstance(part, ast.Assign)]
        if len(self.before) < len(before) or not isinstance(last, (ast.Expr, ast.Assign)):
            raise TableError(f"not an expression: {text!r}")
        # What others call it, where it is `name = …`.
        self.name = ast.unparse(last.targets[0]) if isinstance(last, ast.Assign) else ""
        self.tree = last.value

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """Name → how it occurs: "called", asked for its "meta" data, or "whole"; members are no names."""
        found: dict[str, set[str]] = {}
        waiting: list[ast.AST] = [self.tree, *(part.value for part in self.before)]
        while waiting:
            match waiting.pop():
                case ast.Call(func=ast.Name(id=name), args=inside):
                    how = "called"
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=asked), args=inside) if asked in _META:
                    how = "meta"
                case ast.Name(id=name):
                    how, inside = "whole", []
                case node:
                    name, how, inside = "", "", list(ast.iter_child_nodes(node))
            found.setdefault(name, set()).add(how)
            waiting += inside
        found.pop("", None)
        return found

    @property
    def takes_undefined(self) -> bool:
        """Whether gradients in it may be undefined."""
        return any(_is_undefined_too(node) for node in ast.walk(self.tree))

    @property
    def is_python(self) -> bool:
        """Whether Python can carry it out as C++ does."""
        return not any(isinstance(node, (ast.Set, ast.Dict, ast.Subscript)) for node in ast.walk(self.tree))

    @cached_property
    def cpp(self) -> str:
        return self._printed(self.tree)[0]

    def statements(self, ops: Container[str]) -> list[str]:
        """A function's body in a namespace where functions have the names of ops."""
        made = []
        for part in self.before:
            names = ast.unparse(part.targets[0]).strip("()")
            made.append(f"const auto {f'[{names}]' if ',' in names else names} = {self._printed(part.value, ops)[0]};")
        return [*made, f"return {self._printed(self.tree, ops)[0]};"]

    def _printed(self, node: ast.AST, ops: Container[str] = ()) -> tuple[str, int]:
        """C++, and how tightly its outermost operator binds."""

        def inside(part: ast.AST, least: int = 0) -> str:
            text, binds = self._printed(part, ops)
            return text if binds >= least else f"({text})"

        def operation(kind: ast.AST, *parts: ast.AST) -> tuple[str, int]:
            sign, binds = _BINARY[type(kind)]
            first, *others = parts
            return f" {sign} ".join([inside(first, binds), *(inside(part, binds + 1) for part in others)]), binds

        match node:
            case ast.BoolOp(values=[gradient, _]) if _is_undefined_too(node):
                return inside(gradient), _SIGN + 1
            case ast.BoolOp(op=kind, values=parts):
                return operation(kind, *parts)
            case ast.BinOp(left=left, op=kind, right=right) | ast.Compare(left=left, ops=[kind], comparators=[right]):
                return operation(kind, left, right)
            case ast.UnaryOp(op=kind, operand=part):
                return f"{_SIGNS[type(kind)]}{inside(part, _SIGN)}", _SIGN
            case ast.IfExp(test=test, body=body, orelse=other):
                return f"{inside(test, 1)} ? {inside(body, 1)} : {inside(other)}", _CHOICE
            case ast.Call(func=ast.Name(id=name), args=given) if name in ops:
                text = f"rushlight::{name}({commas(map(inside, given))})"
            case ast.Call(func=function, args=given, keywords=[]):
                text = f"{inside(function, _SIGN + 1)}({commas(map(inside, given))})"
            case ast.Attribute(value=owner, attr=name):
                text = f"{inside(owner, _SIGN + 1)}.{name}"
            case ast.Subscript(value=results, slice=ast.Constant(value=place)):
                text = f"std::get<{place}>({inside(results)})"
            case ast.Set(elts=items) | ast.Tuple(elts=items):
                text = f"{{{commas(map(inside, items))}}}"
            case ast.Dict(keys=[]):
                text = "{}"
            case ast.Constant(value=str(text)):
                text = json.dumps(text)
            case ast.Constant():
                text = ast.get_source_segment(self.text, node) or ""
            case ast.Name(id=name):
                text = "std::nullopt" if name == "none" else name
            case _:
                raise TableError(f"{self.text!r}: C++ has nothing like {ast.unparse(node)!r}")
        return text, _SIGN + 1


def _is_undefined_too(node: ast.AST) -> bool:
    """Whether it is `gradient or none`."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=[_, ast.Name(id="none")]):
            return True
    return False


@cache
def read(text: str) -> Expression:
    return Expression(text)
