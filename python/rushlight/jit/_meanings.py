"""What names and values of Python mean to the compiler of programs (src/script).

The compiler asks the scopes below. An answer is a pair: a word, such as "op", and what it is about,
such as "aten::relu"; None is no answer. Functions, classes and modules are compiled when they are
asked for, by whom `meaning_of` has registered: `_functions.py`, `_classes.py`, `_modules.py`.
"""

from __future__ import annotations

import builtins
import enum
import inspect
import re
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight.jit._program import RecursiveScriptClass

unit = _C._ProgramUnit()  # of all that is compiled from Python

Answer = tuple[str, Any] | None

# ---- names of what has been compiled ----

ROOT = rushlight.__name__  # "torch" where the library stands in for PyTorch
_LIBRARY = re.compile(rf"^{ROOT}(\.jit\._library\.\w+)?(?![^.])")
_counts: dict[str, int] = {}  # how often each name has been asked for
compiled: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
running: dict[Any, str] = {}  # what is being compiled, and the names that it gets
owners: dict[str, Any] = {}  # who answers for a class of programs, by its name


def is_own(obj: Any) -> bool:
    """Whether a function or class is of this library."""
    return (getattr(obj, "__module__", None) or "").split(".")[0] == ROOT


def is_of_networks(obj: Any) -> bool:
    """Whether it is of `vision`, whose networks are written so that they compile."""
    return (getattr(obj, "__module__", None) or "").startswith(f"{ROOT}.vision.")


def new_name(obj: Any) -> str:
    """The name of a function or class in programs; one that is taken gets a package of its own."""
    module = _LIBRARY.sub("torch", obj.__module__ or "")
    name = obj.__qualname__.replace(".<locals>", "") if isinstance(obj, type) else obj.__name__
    name = name.replace("<lambda>", "_lambda_")
    package = "__torch__" if module in ("", "__main__") else f"__torch__.{module}"
    package, _, name = f"{package}.{name}".rpartition(".")
    return free_name(package, name)


def free_name(package: str, name: str) -> str:
    """The name in a package, or in one within it where that is taken."""
    asked = f"{package}.{name}"
    while True:
        number = _counts.get(asked, 0)
        _counts[asked] = number + 1
        full = f"{package}.___torch_mangle_{number - 1}.{name}" if number else asked
        if not unit.has_class(full):  # freezing makes classes, too
            return full


# ---- types ----

SIMPLE: dict[Any, str] = {
    Tensor: "Tensor",
    nn.Parameter: "Tensor",
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    type(None): "NoneType",
    None: "NoneType",
    Any: "Any",
    rushlight.device: "Device",
    rushlight.dtype: "int",
    rushlight.layout: "int",
    rushlight.memory_format: "int",
    rushlight.Generator: "Generator",
    rushlight.Size: "List[int]",
}
_GENERIC = {list: "List", dict: "Dict", tuple: "Tuple"}


def type_text(kind: Any) -> str | None:
    """A type of Python in the words of programs; None where they have no such type."""
    try:
        if kind in SIMPLE:
            return SIMPLE[kind]
    except TypeError:
        return None
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, RecursiveScriptClass):
        return kind._c.name
    if origin is None:
        known = compiled.get(kind) if isinstance(kind, type) else None
        answer = known or (describe_class(kind) if isinstance(kind, type) else None)
        return answer if isinstance(answer, str) else _named_type(answer)
    if origin is typing.Final:
        return type_text(inner[0])
    parts = [type_text(one) for one in inner if one != ()]
    if any(part is None for part in parts):
        return None
    if origin in (typing.Union, types.UnionType):
        rest = [str(part) for part in parts if part != "NoneType"]
        if len(rest) == 1 and len(parts) == 2:
            return f"Optional[{rest[0]}]"
        return f"Union[{', '.join(map(str, parts))}]"
    if origin in _GENERIC:
        return f"{_GENERIC[origin]}[{', '.join(map(str, parts)) or '()'}]"
    name = getattr(origin, "__name__", "")
    if name in ("Future", "Await"):
        return f"{name}[{parts[0]}]"
    return None


def _named_type(answer: Answer) -> str | None:
    return answer[1] if answer is not None and answer[0] == "class" else None


def type_of_value(value: Any) -> str | None:
    """What a program would say a value is; None where programs have no such values."""
    if isinstance(value, enum.Enum):
        return _named_type(describe_class(type(value)))
    if isinstance(value, bool | int | float | str | complex) or value is None:
        return SIMPLE.get(type(value))
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, rushlight.Size):
        return f"Tuple[{', '.join(['int'] * len(value))}]" if value else "Tuple[()]"
    if isinstance(value, rushlight.dtype | rushlight.layout | rushlight.memory_format):
        return "int"
    if isinstance(value, rushlight.device):
        return "Device"
    if isinstance(value, RecursiveScriptClass):
        return value._c.name
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _named_type(describe_class(type(value)))
    if isinstance(value, tuple):
        parts = [type_of_value(item) for item in value]
        return None if None in parts else f"Tuple[{', '.join(map(str, parts)) or '()'}]"
    if isinstance(value, list):
        item = _common_type(value)
        return None if item is None else f"List[{item}]"
    if isinstance(value, dict):
        key, item = _common_type(value), _common_type(value.values())
        return None if key is None or item is None else f"Dict[{key}, {item}]"
    return compiled.get(type(value))


def _common_type(values: Any) -> str | None:
    parts = {type_of_value(item) for item in values}
    if len(parts) == 2 and "NoneType" in parts and None not in parts:
        return f"Optional[{(parts - {'NoneType'}).pop()}]"
    return parts.pop() if len(parts) == 1 else None


# ---- what values mean ----

_describers: list[tuple[Any, Callable[[Any, str], Answer]]] = []


def meaning_of(kinds: Any) -> Callable[[Callable], Callable]:
    """Registers a function of a value of these kinds and its name, which answers."""

    def register(function: Callable[[Any, str], Answer]) -> Callable[[Any, str], Answer]:
        _describers.append((kinds, function))
        return function

    return register


def describe_class(kind: type) -> Answer:
    """What a class of Python means."""
    return next(f for kinds, f in _describers if kinds is type)(kind, kind.__name__)


class Space:
    """A module or a class of Python, whose names a program uses behind a dot."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def find(self, name: str) -> Answer:
        """What a name behind the dot means."""
        try:
            value = getattr(self._module, name)
        except AttributeError:
            if self._module in (rushlight, rushlight.ops.aten):  # an op without such a function
                return ("op", f"aten::{name}") if _C._script_has_op(f"aten::{name}") else None
            return None
        return describe(value, name)

    def __str__(self) -> str:
        return f"the module '{self._module.__name__}'"


class Behind:
    """What `super()` gives: the names of the classes behind the one that a method is written in."""

    def __init__(self, owner: str, kind: type) -> None:
        self._owner, self._kind = owner, kind

    def find(self, name: str) -> Answer:
        """A method, which becomes one of the class under a name of its own."""
        return owners[self._owner].member_behind(self._kind, name)

    def __str__(self) -> str:
        return f"super() of '{self._kind.__name__}'"


def behind(mro: tuple[type, ...], kind: type) -> tuple[type, ...]:
    """The classes behind one of the order in which methods are looked for."""
    return mro[mro.index(kind) + 1 :] if kind in mro else ()


class Package:
    """The classes of programs whose names begin alike."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find(self, name: str) -> Answer:
        """A class, or a package within this one."""
        full = f"{self._name}.{name}"
        return ("class", full) if full in owners else ("space", Package(full))

    def __str__(self) -> str:
        return self._name


def constant(value: Any) -> Answer:
    """The answer of a value that is known; None where programs have no such values."""
    text = type_of_value(value)
    return None if text is None else ("constant", (value, text))


def describe(value: Any, name: str) -> Answer:
    """The answer to the compiler of what a value of Python means; None: nothing that it knows."""
    if isinstance(value, enum.Enum):
        text = type_of_value(value)
        return None if text is None else ("enum", (text, value.name))
    plain = bool | int | float | complex | str | rushlight.device | tuple
    numbers = rushlight.dtype | rushlight.layout | rushlight.memory_format
    if isinstance(value, plain | numbers) or value is None:
        return constant(value)
    if isinstance(value, types.ModuleType):
        return "space", Space(value)
    if isinstance(value, Tensor):
        raise RuntimeError(
            f"'{name}' is a tensor outside of the program: pass it as an argument, or make it an "
            "attribute of the module"
        )
    if isinstance(value, type):
        return describe_class(value)
    text = type_text(value) if typing.get_origin(value) is not None else None
    if text is not None:
        return "type", text
    for kinds, function in _describers:
        if kinds is not type and isinstance(value, kinds):
            answer = function(value, name)
            if answer is not None:
                return answer
    return None


def defaults_of(function: Any) -> dict[str, Any]:
    """The defaults of the parameters that have one."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


class Names:
    """What names mean to a text that is compiled; of one that is made here: the classes of types.

    Args:
        defaults: of its parameters, by their names.
    """

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        self._defaults = defaults or {}
        self._annotations: dict[str, Any] = {}

    def find(self, name: str) -> Answer:
        """What a free name means: here the packages of classes, which texts of types name."""
        return ("space", Package(name)) if name == "__torch__" else None

    def member(self, class_name: str, name: str) -> Answer:
        """What an object has beside attributes and compiled methods."""
        owner = owners.get(class_name)
        return owner.member(name) if owner is not None else None

    def submodules(self, class_name: str) -> list[str] | None:
        """The names in a list or dict of modules, in order; None of others."""
        parts = getattr(owners.get(class_name), "submodules", None)
        return parts() if parts is not None else None

    def annotation(self, parameter: str) -> str | None:
        """The type of a parameter, where its annotation has been evaluated."""
        hint = self._annotations.get(parameter, "")
        return None if isinstance(hint, str) else type_text(hint)

    def fallback(self, parameter: str) -> tuple[Any] | None:
        """The default of a parameter, as a tuple of one."""
        return (self._defaults[parameter],) if parameter in self._defaults else None


class Scope(Names):
    """The names around a function."""

    def __init__(self, function: Any, names: dict[str, Any] | None = None) -> None:
        super().__init__(defaults_of(function))
        self._own = names or {}
        cells = function.__closure__ or ()
        self._closure = dict(zip(function.__code__.co_freevars, cells, strict=True))
        self._globals = function.__globals__
        self._annotations = getattr(function, "__annotations__", {})
        self._owner: str | None = None

    def of_method(self, owner: str) -> Scope:
        """The same names, and `super()` of a method of a class of programs."""
        self._owner = owner
        return self

    def of_overload(self, overload: Any) -> Scope:
        """The same names, with the types and the defaults of a signature."""
        self._defaults = {k: v for k, v in self._defaults.items() if k in defaults_of(overload)}
        self._annotations = getattr(overload, "__annotations__", {})
        return self

    def find(self, name: str) -> Answer:
        """What a free name means."""
        if name == "super()":
            cell = self._closure.get("__class__")
            if cell is None or self._owner is None:
                return None
            return "space", Behind(self._owner, cell.cell_contents)
        if name in self._own:
            return describe(self._own[name], name)
        if name in self._closure:
            try:
                return describe(self._closure[name].cell_contents, name)
            except ValueError:  # the cell is empty: what it names does not exist yet
                return None
        if name in self._globals:
            return describe(self._globals[name], name)
        value = getattr(builtins, name, None)
        return describe(value, name) if isinstance(value, type) else super().find(name)
