"""`ops.aten.NAME` and `ops.aten.NAME.OVERLOAD`: ops in boxed form, by their schemas' names."""

from __future__ import annotations

import ast
import re
import types
from functools import cache
from typing import Any

from rushlight import _C

_SIGNATURE = re.compile(r"(\w+)(?:\.(\w+))?\((.*)\)\s*->", re.DOTALL)
_COMMA = re.compile(r",(?![^(\[]*[)\]])")  # outside brackets
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


# Where one signature of ours stands for several of PyTorch's, all their names lead to it.
_MERGED = frozenset(
    "default Tensor Scalar dim dim_IntList self int correction Tensor_Tensor Tensor_Scalar".split()  # noqa: SIM905
)
_OPTIONS = ("dtype", "layout", "device", "pin_memory", "requires_grad")


class OpOverload:
    """One signature of an op; calling it runs the op through modes, autograd and all."""

    namespace = "aten"

    def __init__(self, schema, packet=None):
        self._schema = self.schema = schema
        match = _SIGNATURE.match(schema)
        if match is None:
            raise ValueError(f"not a schema: {schema!r}")
        name, overload, arguments = match.groups()
        self._opname, self.overload = name, overload or ""
        self._packet = packet
        names: list[str] = []
        kinds: list[str] = []
        self.defaults: list[Any] = []
        self._num_positional = None
        for part in filter(None, map(str.strip, _COMMA.split(arguments))):
            if part == "*":
                self._num_positional = len(names)
                continue
            if part == "options" and self._num_positional is None:
                self._num_positional = len(names)
            declaration, _, default = (
                ("options options", "=", "{}") if part == "options" else part.partition("=")
            )
            kind, _, argument = declaration.strip().rpartition(" ")
            names.append(argument)
            kinds.append(re.sub(r"\([a-z]!?\)", "", kind))
            self.defaults.append(_parse_default(default.strip()) if default else _REQUIRED)
        self.names, self.types = tuple(names), tuple(kinds)
        if self._num_positional is None:
            self._num_positional = len(self.names)
        public = self.overload
        if not public and any("|Scalar" in kind for kind in self.types):
            public = "Tensor"
        self._overloadname = public or "default"
        self.__name__ = f"{name}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.is_view = "(a)" in arguments

    @property
    def overloadpacket(self):
        """All signatures of the op."""
        return self._packet if self._packet is not None else _packet(self._opname)

    def name(self):
        """The name with its namespace: "aten::add.Tensor"."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self._opname}{suffix}"

    def __call__(self, /, *args, **kwargs):
        if len(args) > len(self.names):
            raise TypeError(
                f"{self.__name__}() takes {len(self.names)} arguments but {len(args)} were given"
            )
        values = [*args, *self.defaults[len(args) :]]
        for name, value in kwargs.items():
            if name in self.names:
                values[self.names.index(name)] = value
            elif name in _OPTIONS and "options" in self.names:
                place = self.names.index("options")
                values[place] = {**(values[place] or {}), name: value}
            else:
                raise TypeError(f"{self.__name__}() got an unexpected keyword argument '{name}'")
        missing = [f'"{n}"' for n, v in zip(self.names, values, strict=True) if v is _REQUIRED]
        if missing:
            raise TypeError(
                f"{self.__name__}() missing {len(missing)} required arguments: {', '.join(missing)}"
            )
        return _C._call_op(self._opname, self.overload, tuple(values), self.types, self.names)

    def arguments_of(self, values):
        """Boxed values as (args, kwargs) of a call; what equals its default is left out."""
        n = self._num_positional
        args = list(values[:n])
        while args and _is_default(args[-1], self.defaults[len(args) - 1]):
            args.pop()
        kwargs: dict[str, Any] = {}
        for name, value, default in zip(self.names[n:], values[n:], self.defaults[n:], strict=True):
            if name == "options":
                kwargs.update(value or {})
            elif not _is_default(value, default):
                kwargs[name] = value
        return tuple(args), kwargs

    def __str__(self):
        return f"aten.{self.__name__}"

    def __repr__(self):
        return f"<OpOverload(op='aten.{self._opname}', overload='{self._overloadname}')>"

    def __reduce__(self):
        return _overload, (self._opname, self.overload)

    def __deepcopy__(self, memo):
        return self


def _is_default(value, default):
    if default is _REQUIRED:
        return False
    if isinstance(value, (tuple, list)) and isinstance(default, (tuple, list)):
        return list(value) == list(default)
    return type(value) is type(default) and value == default


class OpOverloadPacket:
    """All signatures of an op, as attributes; calling it takes the first that fits."""

    def __init__(self, name, schemas):
        self.__name__ = name
        self._qualified_op_name = f"aten::{name}"
        self._overloads = {
            o.overload or "default": o for o in (OpOverload(s, self) for s in schemas)
        }

    def overloads(self):
        """The names of the signatures."""
        return list(self._overloads)

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        found = self._overloads.get(overload)
        if found is None and overload in _MERGED:
            found = self._overloads.get("default") or next(iter(self._overloads.values()))
        if found is None:
            raise AttributeError(f"The op 'aten::{self.__name__}' has no overload '{overload}'")
        return found

    def __call__(self, /, *args, **kwargs):
        errors = []
        for overload in self._overloads.values():
            try:
                return overload(*args, **kwargs)
            except TypeError as error:
                errors.append(str(error))
        raise TypeError("; ".join(errors))

    def __str__(self):
        return f"aten.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _overload(name, overload):
    """The object of one signature; `overload` as the schema has it."""
    return _packet(name)._overloads[overload or "default"]


def _dispatch(mode, overload, values):
    """Offers a call to a TorchDispatchMode, which is popped while its method runs."""
    args, kwargs = overload.arguments_of(values)
    return mode.__torch_dispatch__(overload, (), args, kwargs)


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


class _Custom(types.ModuleType):
    """The custom ops of a namespace (`rushlight.library`)."""

    def __getattr__(self, name):
        raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'")


class _Ops(types.ModuleType):
    """`rushlight.ops`."""

    def __init__(self):
        super().__init__("rushlight.ops")
        self.aten = _Namespace("rushlight.ops.aten")

    def _add(self, namespace, name, op):
        setattr(getattr(self, namespace), name, op)

    def __getattr__(self, namespace):
        if namespace.startswith("__"):
            raise AttributeError(namespace)
        made = _Custom(namespace)
        setattr(self, namespace, made)
        return made


ops: _Ops = _Ops()
