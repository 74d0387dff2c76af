"""`ops.aten.NAME` and `ops.aten.NAME.OVERLOAD`: ops in boxed form, by their schemas' names."""

from __future__ import annotations

import ast
import re
import types
from functools import cache

from rushlight import _C

_SIGNATURE = re.compile(r"(\w+)(?:\.(\w+))?\((.*)\)\s*->", re.DOTALL)
_CONSTANTS = {
    "None": None,
    "True": True,
    "False": False,
    "Contiguous": _C.contiguous_format,
    "Preserve": _C.preserve_format,
    "inf": float("inf"),
    "-inf": float("-inf"),
    "nan": float("nan"),
    "{}": None,
}
_REQUIRED = object()


def _split(text):
    """Splits at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


class OpOverload:
    """One signature of an op; calling it runs the op through modes, autograd and all."""

    def __init__(self, schema):
        self.schema = schema
        match = _SIGNATURE.match(schema)
        if match is None:
            raise ValueError(f"not a schema: {schema!r}")
        name, overload, arguments = match.groups()
        self.name, self.overload = name, overload or ""
        self.__name__ = f"{name}.{overload or 'default'}"
        self.names, self.types, self.defaults = [], [], []
        for part in _split(arguments):
            if part == "*":
                continue
            declaration, _, default = (
                ("options options", "=", "{}") if part == "options" else part.partition("=")
            )
            kind, _, argument = declaration.strip().rpartition(" ")
            self.names.append(argument)
            self.types.append(re.sub(r"\([a-z]!?\)", "", kind))
            self.defaults.append(_parse_default(default.strip()) if default else _REQUIRED)
        self.names, self.types = tuple(self.names), tuple(self.types)

    def __call__(self, *args, **kwargs):
        if len(args) > len(self.names):
            raise TypeError(
                f"{self.__name__}() takes {len(self.names)} arguments but {len(args)} were given"
            )
        values = [*args, *self.defaults[len(args) :]]
        for name, value in kwargs.items():
            if name not in self.names:
                raise TypeError(f"{self.__name__}() got an unexpected keyword argument '{name}'")
            values[self.names.index(name)] = value
        missing = [f'"{n}"' for n, v in zip(self.names, values, strict=True) if v is _REQUIRED]
        if missing:
            raise TypeError(
                f"{self.__name__}() missing {len(missing)} required arguments: {', '.join(missing)}"
            )
        return _C._call_op(self.name, self.overload, tuple(values), self.types, self.names)

    def __repr__(self):
        return f"<OpOverload(op='aten.{self.name}', overload='{self.overload or 'default'}')>"


class OpOverloadPacket:
    """All signatures of an op, as attributes; calling it takes the first that fits."""

    def __init__(self, name, schemas):
        self.__name__ = name
        self._overloads = {o.overload or "default": o for o in map(OpOverload, schemas)}

    def overloads(self):
        """The names of the signatures."""
        return list(self._overloads)

    def __getattr__(self, overload):
        try:
            return self._overloads[overload]
        except KeyError:
            raise AttributeError(
                f"The op 'aten::{self.__name__}' has no overload '{overload}'"
            ) from None

    def __call__(self, *args, **kwargs):
        errors = []
        for overload in self._overloads.values():
            try:
                return overload(*args, **kwargs)
            except TypeError as error:
                errors.append(str(error))
        raise TypeError("; ".join(errors))

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _parse_default(text):
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return getattr(_C, text.lower())  # a dtype


@cache
def _packet(name):
    schemas = _C._op_schemas(name)
    if not schemas:
        raise AttributeError(f"no op is named 'aten::{name}'")
    return OpOverloadPacket(name, schemas)


class _Namespace(types.ModuleType):
    def __getattr__(self, name):
        return _packet(name)

    def __dir__(self):
        return sorted(_C._op_names())


class _Ops(types.ModuleType):
    """`rushlight.ops`."""

    def __init__(self):
        super().__init__("rushlight.ops")
        self.aten = _Namespace("rushlight.ops.aten")


ops = _Ops()
