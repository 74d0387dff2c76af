"""`ops.aten.NAME` and `ops.aten.NAME.OVERLOAD`: ops in boxed form, under PyTorch's names.

What an op takes is data of the registry in C++ (`_C._op_schema`); nothing here reads schema texts.
"""

from __future__ import annotations

import importlib
import os
import re
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import _C
from rushlight._library.tags import from_bits

_REQUIRED: Any = object()


class AliasInfo(NamedTuple):
    """How an argument or a result shares memory: those with the same name do."""

    before_set: frozenset
    is_write: bool


class Argument(NamedTuple):
    """An argument or a result of a schema; `default_value` where `has_default_value()`."""

    name: str
    type: str
    default_value: Any = None
    kwarg_only: bool = False
    alias_info: AliasInfo | None = None
    default: tuple = ()  # holds the default where there is one

    @property
    def N(self):
        """Of int[2] the 2: one number stands for as many; None of all others."""
        size = re.search(r"\[(\d+)\]", self.type)
        return int(size[1]) if size is not None else None

    def has_default_value(self):
        """Whether the argument has a default."""
        return bool(self.default)

    @property
    def is_out(self) -> bool:
        """Whether the argument is an `out=` argument."""
        return self.kwarg_only and self.alias_info is not None and self.alias_info.is_write


class HigherOrderOperator:
    """The base class of operators that take functions; subclasses define what a call does.

    Here these are plain functions (`utils.checkpoint`, `vmap`), and none is of this class.
    """

    def __init__(self, name: str) -> None:
        self._name = self.__name__ = name

    def name(self) -> str:
        """The name of the operator."""
        return self._name

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} does not say what a call does")

    def __str__(self) -> str:
        return self._name


class FunctionSchema(NamedTuple):
    """The name, the arguments and the results of an overload."""

    name: str  # "aten::add"
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    text: str

    @property
    def is_mutable(self) -> bool:
        """Whether the overload writes into an argument."""
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def __str__(self) -> str:
        return self.text


def _argument(row, kwarg_only=False, default=()):
    name, kind, alias, written = row
    info = AliasInfo(frozenset({f"alias::{alias}"}), written) if alias else None
    return Argument(name, kind, default[0] if default else None, kwarg_only, info, default)


def _schema(index: int, space: str, name: str, overload: str) -> FunctionSchema:
    text, arguments, results = _C._op_schema(index)
    return FunctionSchema(
        f"{space}::{name}",
        overload,
        tuple(_argument(*row) for row in arguments),
        tuple(_argument(row) for row in results),
        text,
    )


def _offered(op, args, kwargs):
    """What modes and `__torch_function__` of arguments make of a call."""
    return _C._offer_torch_function(op, (*args, *kwargs.values()), args, kwargs)


class OpOverload:
    """One overload of an op; calling it runs the op with modes and autograd."""

    def __init__(self, packet: OpOverloadPacket, index: int, overload: str) -> None:
        self._index = index
        self._tags: list | None = None
        self._describe(packet, _schema(index, packet._space, packet.__name__, overload))

    def _describe(self, packet, schema):
        self._packet, self._schema = packet, schema
        self._overloadname = schema.overload_name or "default"
        self._opname = packet.__name__
        self.namespace = packet._space
        self.__name__ = f"{packet.__name__}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = f"rushlight.ops.{packet._space}"
        arguments = self._schema.arguments
        self._names = {a.name: i for i, a in enumerate(arguments)}
        self._defaults = tuple(a.default[0] if a.default else _REQUIRED for a in arguments)
        self._num_positional = sum(not a.kwarg_only for a in arguments)

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The packet of all overloads of the op."""
        return self._packet

    _overloadpacket = overloadpacket

    @property
    def is_view(self) -> bool:
        """Whether results share memory with an argument that is not written."""
        return not self._schema.is_mutable and any(r.alias_info for r in self._schema.returns)

    @property
    def tags(self):
        """The tags of the op: a list of `Tag`."""
        if self._tags is None:
            self._tags = from_bits(_C._op_tags(self._index))
        return self._tags

    def name(self) -> str:
        """The name with its namespace: "aten::add.Tensor"."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{suffix}"

    @property
    def _name(self):
        return self.name()

    def __call__(self, /, *args, **kwargs):
        if _C._has_torch_function(*args, *kwargs.values()):
            return _offered(self, args, kwargs)
        return _C._call_op(self._index, tuple(self._values(args, kwargs)))

    def redispatch(self, keyset, /, *args, **kwargs):
        """Call it below autograd where `keyset` has none of its keys; `impl(with_keyset=True)`."""
        return keyset.call(self, args, kwargs)

    def _takes_tensors(self, places: list[int]) -> bool:
        """Whether it has a tensor at one of these places."""
        arguments = self._schema.arguments
        return any(i < len(arguments) and str(arguments[i].type) == "Tensor" for i in places)

    def _values(self, args, kwargs):
        """The values of all arguments, in the order of the schema, or RuntimeError."""
        if len(args) > self._num_positional:
            raise RuntimeError(
                f"{self.__name__}() takes {self._num_positional} positional arguments but "
                f"{len(args)} were given"
            )
        values = [*args, *self._defaults[len(args) :]]
        for name, value in kwargs.items():
            place = self._names.get(name)
            if place is None:
                raise RuntimeError(f"{self.__name__}() got an unexpected keyword argument '{name}'")
            if place < len(args):
                raise RuntimeError(f"{self.__name__}() got multiple values for argument '{name}'")
            values[place] = value
        missing = [f'"{n}"' for n, v in zip(self._names, values, strict=True) if v is _REQUIRED]
        if missing:
            raise RuntimeError(
                f"{self.__name__}() missing {len(missing)} required arguments: {', '.join(missing)}"
            )
        return values

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return (
            f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"
        )

    def __reduce__(self):
        overload = self._schema.overload_name
        return _overload, (self.namespace, self._opname, overload)

    def __deepcopy__(self, memo):
        return self


class Question(OpOverload):
    """What a tensor says of itself, in the form of an op: `aten::sym_size`, `prim::device`.

    The class of a tensor is asked where `Tensor._make_wrapper_subclass` was told so.
    """

    def __init__(
        self,
        packet: OpOverloadPacket,
        overload: str,
        more: tuple[tuple[str, str], ...],
        result: str,
        read: Callable[..., Any],
    ) -> None:
        arguments = (Argument("self", "Tensor"), *(Argument(n, kind) for n, kind in more))
        text = ", ".join(f"{a.type} {a.name}" for a in arguments)
        name = f"{packet._qualified_op_name}{'.' if overload else ''}{overload}"
        self._read, self._tags = read, []
        returns = (Argument("", result),)
        schema = f"{name}({text}) -> {result}"
        self._describe(
            packet,
            FunctionSchema(packet._qualified_op_name, overload, arguments, returns, schema),
        )

    def __call__(self, /, *args, **kwargs):
        return self._read(*self._values(args, kwargs))


_DIM, _FORMAT = (("dim", "int"),), (("memory_format", "MemoryFormat"),)
# Name, overload, arguments beside the tensor, result, and who answers for a plain tensor.
_QUESTIONS: tuple = (
    ("aten::size", "", (), "int[]", lambda t: t.size()),
    ("aten::size", "int", _DIM, "int", lambda t, dim: t.size(dim)),
    ("aten::sym_size", "", (), "SymInt[]", lambda t: t.size()),
    ("aten::sym_size", "int", _DIM, "SymInt", lambda t, dim: t.size(dim)),
    ("aten::stride", "", (), "int[]", lambda t: t.stride()),
    ("aten::stride", "int", _DIM, "int", lambda t, dim: t.stride(dim)),
    ("aten::sym_stride", "", (), "SymInt[]", lambda t: t.stride()),
    ("aten::sym_stride", "int", _DIM, "SymInt", lambda t, dim: t.stride(dim)),
    ("aten::dim", "", (), "int", lambda t: t.dim()),
    ("aten::numel", "", (), "int", lambda t: t.numel()),
    ("aten::sym_numel", "", (), "SymInt", lambda t: t.numel()),
    ("aten::storage_offset", "", (), "int", lambda t: t.storage_offset()),
    ("aten::sym_storage_offset", "", (), "SymInt", lambda t: t.storage_offset()),
    ("aten::is_contiguous", "", (), "bool", lambda t: t.is_contiguous()),
    (
        "aten::is_contiguous",
        "memory_format",
        _FORMAT,
        "bool",
        lambda t, memory_format: t.is_contiguous(memory_format=memory_format),
    ),
    ("prim::device", "", (), "Device", lambda t: t.device),
    ("prim::layout", "", (), "Layout", lambda t: t.layout),
)


def _tell(tensor, name, *more):
    """The answer of a tensor's class to the question of this name; C++ asks."""
    kind = type(tensor)
    space, _, name = name.partition("::")
    overload = "memory_format" if more else "default"
    question = _overload(space, name, overload)
    answer = kind.__torch_dispatch__(question, (kind,), (tensor, *more), {})
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{space}.{name}': __torch_dispatch__ of "
            f"{kind.__name__} returned NotImplemented"
        )
    return answer


class _Row(NamedTuple):
    """An overload in the registry of C++."""

    index: int
    overload: str
    of_library: bool  # that a program has defined, with `torch.library` or TORCH_LIBRARY


class OpOverloadPacket:
    """All overloads of an op, as attributes; calling it runs the first that fits."""

    def __init__(self, space: str, name: str) -> None:
        self.__name__, self._space = name, space
        self.__module__ = f"rushlight.ops.{space}"
        self._qualified_op_name = f"{space}::{name}"
        self._questions = {
            overload or "default": Question(self, overload, *what)
            for known, overload, *what in _QUESTIONS
            if known == self._qualified_op_name
        }
        self._made: dict[str, OpOverload] = {}

    def _rows(self) -> dict[str, _Row]:
        """By their names, the overloads that the registry has now."""
        rows = [_Row(*row) for row in _C._op_overloads(self._qualified_op_name)]
        return {row.overload or "default": row for row in rows}

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [*self._rows(), *self._questions]

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        found = self._questions.get(overload)
        if found is not None:
            return found
        row = self._rows().get(overload)
        if row is None:
            raise AttributeError(f"The op '{self._qualified_op_name}' has no overload '{overload}'")
        made = self._made.get(overload)
        if made is None or made._index != row.index:
            classes = of_libraries if row.of_library else _of_table
            made = self._made[overload] = classes.overload(self, row.index, row.overload)
        return made

    def __dir__(self):
        return [*super().__dir__(), *self.overloads()]

    def __call__(self, /, *args, **kwargs):
        if _C._has_torch_function(*args, *kwargs.values()):
            return _offered(self, args, kwargs)
        errors = []
        for overload in self._candidates(args):
            try:
                overload._values(args, kwargs)
            except RuntimeError as error:
                errors.append(str(error))
                continue
            try:
                return overload(*args, **kwargs)
            except TypeError as error:
                errors.append(str(error))
        raise RuntimeError(f"{self}: failed to match any schema: {'; '.join(errors)}")

    def _candidates(self, args):
        """The overloads, those that would take a number for a tensor last."""
        found = [getattr(self, overload) for overload in self.overloads()]
        numbers = [i for i, value in enumerate(args) if isinstance(value, (int, float, complex))]
        if numbers and len(found) > 1:
            found.sort(key=lambda overload: overload._takes_tensors(numbers))
        return found

    def __str__(self) -> str:
        return f"{self._space}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._space}.{self.__name__}')>"

    def __reduce__(self):
        return _packet, (self._space, self.__name__)


def _overload(space: str, name: str, overload: str) -> OpOverload:
    """The object of one signature."""
    return getattr(_packet(space, name), overload or "default")


class Classes(NamedTuple):
    """The classes of overloads and of packets."""

    overload: type[OpOverload]
    packet: type[OpOverloadPacket]


_of_table = Classes(OpOverload, OpOverloadPacket)
of_libraries = _of_table  # _library/registry.py puts its own here


# By namespace and name: packets that programs may hold, for as long as the op is there.
_packets: dict[tuple[str, str], OpOverloadPacket] = {}


def _packet(space: str, name: str) -> OpOverloadPacket:
    found = _packets.get((space, name))
    if found is None:
        rows = [_Row(*row) for row in _C._op_overloads(f"{space}::{name}")]
        alone = bool(rows) and all(row.of_library for row in rows)
        found = (of_libraries if alone else _of_table).packet(space, name)
        if not found.overloads():
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
        _packets[space, name] = found
    return found


def all_schemas():
    """The schemas of all overloads of the table, aten's and those of `rushlight` alone."""
    return [schema for name in sorted(_C._op_names()) for schema in schemas_of(name)]


def schemas_of(qualified_name: str) -> list[FunctionSchema]:
    """The schemas of an op's overloads, "aten::add"; an empty list where there is no such op."""
    space, _, name = qualified_name.rpartition("::")
    return [
        _schema(index, space, name, overload)
        for index, overload, of_library in _C._op_overloads(qualified_name)
        if not of_library
    ]


class _Namespace(types.ModuleType):
    """The ops of a namespace."""

    def __init__(self, space: str) -> None:
        super().__init__(f"rushlight.ops.{space}")
        self._space = space

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__") and not _C._op_overloads(f"{self._space}::{name}"):
            raise AttributeError(name)
        found = _packet(self._space, name)
        setattr(self, name, found)
        return found

    def __dir__(self):
        prefix = f"{self._space}::"
        names = _C._op_names() | _C._library_op_names()
        return sorted(n.removeprefix(prefix) for n in names if n.startswith(prefix))


class _Ops(types.ModuleType):
    """`rushlight.ops`."""

    higher_order: types.SimpleNamespace  # by _higher_order_ops.operators

    def __init__(self) -> None:
        super().__init__("rushlight.ops")
        self.aten = _Namespace("aten")
        self.loaded_libraries: set[str] = set()
        self.rushlight = _Namespace("rushlight")
        self.prim = _Namespace("prim")

    def _remove(self, namespace: str, name: str) -> None:
        """Forgets an op whose last overload is gone."""
        _packets.pop((namespace, name), None)
        vars(getattr(self, namespace)).pop(name, None)

    def load_library(self, path):
        """Load a shared library, whose TORCH_LIBRARY blocks define ops.

        Raises:
            OSError: it cannot be loaded.
        """
        import ctypes

        from rushlight._library import stable

        path = os.path.realpath(path)
        try:
            try:
                ctypes.CDLL(path)
            except OSError as error:
                if not stable.is_about_names(error):
                    raise
                stable.load_names()
                ctypes.CDLL(path)
        except OSError as error:
            raise OSError(f"Could not load this library: {path}: {error}") from error
        self.loaded_libraries.add(path)

    def __getattr__(self, namespace: str) -> _Namespace:
        if namespace.startswith("__"):
            raise AttributeError(namespace)
        if namespace == "higher_order":
            importlib.import_module(
                "rushlight._higher_order_ops.operators"
            )  # it sets the attribute
            return vars(self)[namespace]
        made = _Namespace(namespace)
        setattr(self, namespace, made)
        return made


ops: _Ops = _Ops()
