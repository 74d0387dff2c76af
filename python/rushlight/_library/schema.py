"""Schemas of ops of one's own, read from their text: "name.overload(Tensor x, int n=2) -> Tensor".

Ops of the table need none of this: what they take is data of the registry in C++.
"""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

import rushlight
from rushlight._ops import AliasInfo, Argument, FunctionSchema

_TYPES = frozenset(
    [
        "Tensor",
        "int",
        "SymInt",
        "float",
        "SymFloat",
        "bool",
        "SymBool",
        "str",
        "Scalar",
        "complex",
        "ScalarType",
        "Device",
        "Layout",
        "MemoryFormat",
        "Generator",
        "Dimname",
        "Storage",
        "Stream",
        "Any",
        "t",
        "QScheme",
    ]
)
_GENERIC = {"Dict": 2, "Future": 1}  # how many types stand in brackets behind them
# What people write for a type, and what it is called.
_MEANT = {
    "int64_t": "Use `SymInt` or `int`",
    "double": "Use `float`",
    "string": "Use `str`",
    "long": "Use `int`",
}
_ENUMS = {
    "Mean": 1,
    "Sum": 2,
    "contiguous_format": rushlight.contiguous_format,
    "preserve_format": rushlight.preserve_format,
    "channels_last": rushlight.channels_last,
    "strided": rushlight.strided,
}

_NAME = re.compile(r"\s*(?:(?P<space>\w+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?\s*\(")
_BASE = re.compile(r"[\w.]+")
_ALIAS = re.compile(r"\s*\((?P<alias>[^)]*)\)")
_MARKS = re.compile(r"\s*((?:\?|\[\s*\d*\s*\]|\s)*)")


class Name(NamedTuple):
    """The parts of "namespace::name.overload"; the overload is empty for the default one."""

    space: str
    name: str
    overload: str

    def __str__(self) -> str:
        return f"{self.space}::{self.name}" + (f".{self.overload}" if self.overload else "")


def name_of(qualname: str) -> Name:
    """The parts of a name with a namespace.

    Raises:
        ValueError: there is no namespace.
    """
    space, separator, rest = qualname.partition("::")
    if not separator or not space or not rest:
        raise ValueError(
            f"Expected qualname to be of the form 'namespace::name', but got {qualname}"
        )
    name, _, overload = rest.partition(".")
    return Name(space, name, "" if overload == "default" else overload)


def _wrong(text, why):
    return RuntimeError(f"{text}: {why}")


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket or quote."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if parts or last else []


def _type(text, whole):
    """The type at the front of a text, its alias, and the rest."""
    text, info = text.strip(), None
    found = _BASE.match(text)
    base = found.group() if found else ""
    rest = text[len(base) :].lstrip()
    if (base in _GENERIC or not base) and rest.startswith("("):
        end = _closing(rest, 1, whole)
        inner = [_type(part, whole)[0] for part in _split(rest[1:end])]
        if len(inner) != _GENERIC.get(base, len(inner)) or not inner:
            raise _wrong(whole, f"expected {_GENERIC.get(base, 1)} types in '{text}'")
        kind, rest = f"{base}({', '.join(inner)})", rest[end + 1 :]
    elif not base:
        raise _wrong(whole, f"expected a type, but found '{text}'")
    elif base not in _TYPES and not base.startswith("__torch__.torch.classes."):
        hint = f" {_MEANT[base]}." if base in _MEANT else ""
        raise _wrong(whole, f"unknown type specifier '{base}'.{hint}")
    else:
        kind = base
        alias = _ALIAS.match(rest)
        if alias is not None:
            before = alias["alias"].partition("->")[0].strip()
            names = {f"alias::{n.strip()}" for n in before.rstrip("!").split("|") if n.strip()}
            info, rest = AliasInfo(frozenset(names), before.endswith("!")), rest[alias.end() :]
    marks: Any = _MARKS.match(rest)  # of nothing, too
    return kind + re.sub(r"\s", "", marks.group()), info, rest[marks.end() :].strip()


def _value(text, kind, whole):
    if text in _ENUMS:
        return _ENUMS[text]
    dtype = getattr(rushlight, text.removeprefix("torch."), None)
    if kind.startswith("ScalarType") and isinstance(dtype, rushlight.dtype):
        return dtype
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        raise _wrong(whole, f"'{text}' is no default of the type {kind}") from None
    if kind.startswith("float") and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if re.search(r"\[\d+\]", kind) and isinstance(value, int):  # int[2] x=1
        return [value] * int(kind[kind.index("[") + 1 : kind.index("]")])
    return value


def _argument(text: str, kwarg_only: bool, whole: str) -> Argument:
    kind, info, rest = _type(text, whole)
    name, equals, said = rest.partition("=")
    name = name.strip()
    if not name.isidentifier():
        raise _wrong(whole, f"an argument of type {kind} needs a name, but there is '{name}'")
    default = (_value(said.strip(), kind, whole),) if equals else ()
    return Argument(name, kind, default[0] if default else None, kwarg_only, info, default)


def _result(text: str, whole: str) -> Argument:
    kind, info, name = _type(text, whole)
    return Argument(name, kind, None, False, info)


def _closing(text: str, start: int, whole: str) -> int:
    """Where the bracket closes that opens before `start`."""
    depth = 1
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise _wrong(whole, "a bracket is not closed")


def parse(text: str, space: str = "") -> FunctionSchema:
    """The schema that a text says, of an op in a namespace.

    Raises:
        RuntimeError: it is not one, or names a type that schemas lack.
    """
    found = _NAME.match(text)
    if found is None:
        raise _wrong(text, "expected a schema 'name(arguments) -> results'")
    end = _closing(text, found.end(), text)
    arguments: list[Argument] = []
    kwarg_only = False
    for part in _split(text[found.end() : end]):
        if part == "*":
            kwarg_only = True
        else:
            arguments.append(_argument(part, kwarg_only, text))
    arrow, said = text[end + 1 :].strip()[:2], text[end + 1 :].strip()[2:].strip()
    if arrow != "->" or not said:
        raise _wrong(text, "expected '->' and the results")
    several = said.startswith("(") and said.endswith(")")
    results = [_result(part, text) for part in (_split(said[1:-1]) if several else [said])]
    name = Name(found["space"] or space, found["name"], found["overload"] or "")
    whole = f"{name}({text[found.end() : end]}) -> {said}"
    return FunctionSchema(
        f"{name.space}::{name.name}", name.overload, tuple(arguments), tuple(results), whole
    )


def is_functional(schema: FunctionSchema) -> bool:
    """Whether nothing is written and no result shares memory with an argument."""
    aliased = any(r.alias_info is not None for r in schema.returns)
    return not schema.is_mutable and not aliased and bool(schema.returns)
