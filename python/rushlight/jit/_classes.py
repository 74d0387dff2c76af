"""Classes of Python as classes of programs: with methods, named tuples, enums, interfaces."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import inspect
import types
import typing
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight.jit import _functions, _library, _meanings, _program, _source
from rushlight.jit._meanings import Answer, Names, Scope, compiled, meaning_of, new_name, unit


@meaning_of(type)
def describe_class(kind: type, name: str) -> Answer:
    """What a class means to the compiler; a class that programs can have is compiled now."""
    if kind is rushlight.device:
        return "op", "aten::device"
    if kind in _meanings.SIMPLE:
        return ("type", _meanings.SIMPLE[kind]) if kind.__module__ != "builtins" else None
    if kind is collections.OrderedDict:  # dicts of programs keep their order
        return "special", "dict"
    if issubclass(kind, BaseException):
        return "special", f"exception {kind.__module__}.{kind.__qualname__}"
    if kind.__module__ == "builtins" or kind.__module__ == "typing":
        return None
    if kind in compiled:
        return "class", compiled[kind]
    if kind is rushlight.no_grad:
        return "class", compile_class(_library.no_grad, _functions.LibraryScope)
    if kind is rushlight.enable_grad:
        return "class", compile_class(_library.enable_grad, _functions.LibraryScope)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return "class", compile_named_tuple(kind)
    if issubclass(kind, enum.Enum):
        return "class", compile_enum(kind)
    if getattr(kind, "__torch_script_interface__", False):
        return "class", compile_interface(kind)
    if issubclass(kind, nn.Module):
        return None
    if _meanings.is_own(kind) and not _meanings.is_of_networks(kind):
        raise RuntimeError(
            f"compiled code cannot use '{name}', the class {kind.__module__}.{kind.__name__}"
        )
    return "class", compile_class(kind)


def is_plain(kind: Any) -> bool:
    """Whether a class is neither an enum, a named tuple, an interface nor this library's own."""
    special = issubclass(kind, (enum.Enum, tuple, BaseException))
    marked = getattr(kind, "__torch_script_interface__", False)
    own = _meanings.is_own(kind) and not _meanings.is_of_networks(kind)
    return not (special or marked or own or kind in _meanings.SIMPLE)


class ClassOwner:
    """Compiles the methods of a class of Python when they are first asked for."""

    def __init__(
        self, kind: type, name: str, scope: type[Scope], names: dict[str, Any] | None = None
    ) -> None:
        self.kind, self.name, self._scope = kind, name, scope
        self.methods: list[str] = []  # that an interface wants
        # What names mean around the class, and what any of its methods names.
        self._names = {**(names or {}), kind.__name__: kind}
        for value in members_of(kind).values():
            if isinstance(value, types.FunctionType):
                self._names = {**_free_values(value), **self._names}

    def _scope_of(self, function: Any) -> Scope:
        return self._scope(function, self._names)

    def member(self, name: str) -> Answer:
        """A method, which is compiled now, a property, or a constant of the class."""
        found = inspect.getattr_static(self.kind, name, None)
        getter, setter = _accessors(name)
        if getter is not None or setter is not None:
            prop = inspect.getattr_static(self.kind, getter or setter or "", None)
            function = getattr(prop, "fget" if getter else "fset", None)
            if function is None:
                return None
            _functions.compile_method(self.name, name, function, self._scope_of)
            return "method", name
        if isinstance(found, property):
            getter = f"__{name}_getter"
            if not unit.has_method(self.name, getter):
                self.member(getter)
            return "property", getter
        if isinstance(found, staticmethod):
            return "function", _functions.compile_function(found.__func__, self._scope_of)
        if isinstance(found, types.FunctionType):
            if not unit.has_method(self.name, name):
                if not _is_method(found):
                    return _compile_comparison(self.kind, self.name, name)
                _functions.compile_method(self.name, name, found, self._scope_of)
            return "method", name
        if found is None or isinstance(found, types.MemberDescriptorType):
            return None
        return _meanings.describe(found, name)

    def member_behind(self, kind: type, name: str) -> Answer:
        """A method that `super()` gives in a method of one of its classes."""
        behind = _meanings.behind(self.kind.__mro__, kind)
        found = next((vars(one)[name] for one in behind if name in vars(one)), None)
        if not isinstance(found, types.FunctionType):
            return None
        own = f"__behind{len(behind)}_{name}"
        if not unit.has_method(self.name, own):
            _functions.compile_method(self.name, own, found, self._scope_of)
        return "method", own


def members_of(kind: Any) -> dict[str, Any]:
    """What a class has by itself and by its bases, `object` aside."""
    out: dict[str, Any] = {}
    for one in reversed(kind.__mro__[:-1]):
        out.update(vars(one))
    return out


def _free_values(function: Any) -> dict[str, Any]:
    """The values of the names that a function takes from the functions around it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    out = {}
    for name, cell in cells:
        with contextlib.suppress(ValueError):  # what it names does not exist yet
            out[name] = cell.cell_contents
    return out


def _accessors(name: str) -> tuple[str | None, str | None]:
    """The property whose getter or setter has this name: x of __x_getter."""
    getter = name[2:-7] if name.startswith("__") and name.endswith("_getter") else None
    setter = name[2:-7] if name.startswith("__") and name.endswith("_setter") else None
    return getter, setter


def compile_class(
    kind: Any, scope: type[Scope] = Scope, names: dict[str, Any] | None = None
) -> str:
    """Compile a class of Python once, with all its methods; its name in programs.

    `names`: what names mean where it is compiled, beside those that its methods know.
    """
    known = compiled.get(kind)
    if known is not None:
        return known
    if any(one.__module__ in ("builtins", "typing") for one in kind.__mro__[1:-1]):
        raise RuntimeError(
            "TorchScript classes does not support inheritance from classes that are not written in "
            f"Python: '{kind.__name__}' derives from one"
        )
    name = compiled[kind] = new_name(kind)
    _program.python_classes[name] = kind
    try:
        unit.add_class(name, "class")
        owner = _meanings.owners[name] = ClassOwner(kind, name, scope, names)
        if dataclasses.is_dataclass(kind):
            _compile_dataclass(kind, name)
        methods = [m for m, f in members_of(kind).items() if _is_method(f)]
        for method in sorted(methods, key=lambda m: m != "__init__"):
            if not unit.has_method(name, method):
                owner.member(method)
    except BaseException:
        del compiled[kind]
        raise
    return name


def script_object(value: Any) -> _program.RecursiveScriptClass:
    """An object of a class of programs with the attributes of an object of Python."""
    handle = unit.create(compiled[type(value)])
    for name, _, _ in handle.attributes():
        handle.set(name, getattr(value, name))
    made = _program.RecursiveScriptClass(handle)
    known = {name for name, _, _ in handle.attributes()} | set(handle.methods())
    made.__dict__.update({k: v for k, v in vars(value).items() if k not in known})
    return made


def _is_method(value: Any) -> bool:
    """Whether it is a function with a text; those that dataclasses make have none."""
    if isinstance(value, staticmethod):
        value = value.__func__
    made = getattr(value, "__wrapped__", value)
    return isinstance(made, types.FunctionType) and made.__code__.co_filename != "<string>"


def _compile_dataclass(kind: Any, name: str) -> None:
    """The constructor that a dataclass has without a text of its own."""
    hints = typing.get_type_hints(kind)
    arguments, lines, defaults = ["self"], [], {}
    for field in dataclasses.fields(kind):
        if field.default_factory is not dataclasses.MISSING:
            raise RuntimeError(
                f"the field '{field.name}' of {kind.__name__} has a default_factory, which "
                "compiled classes cannot have"
            )
        text = _meanings.type_text(hints[field.name])
        has_default = field.default is not dataclasses.MISSING
        if has_default:
            defaults[field.name] = field.default
        arguments.append(f"{field.name}: '{text}'" + (" = None" if has_default else ""))
        lines.append(f"  self.{field.name} = {field.name}\n")
    source = f"def __init__({', '.join(arguments)}):\n" + ("".join(lines) or "  pass\n")
    unit.compile("__init__", source, "", 1, Names(defaults), name, "method", None)


def _compile_comparison(kind: Any, name: str, method: str) -> Answer:
    """A comparison that a dataclass has without a text of its own.

    It is compiled where a program compares: not all that fields may be is compared in PyTorch.
    """
    symbol = {"__eq__": "==", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}.get(
        method
    )
    if symbol is None:
        return None
    lines = []
    for field in dataclasses.fields(kind):
        if field.compare:
            ours, theirs = f"self.{field.name}", f"other.{field.name}"
            decided = "False" if symbol == "==" else f"{ours} {symbol[0]} {theirs}"
            lines.append(f"  if {ours} != {theirs}:\n    return {decided}\n")
    source = (
        f"def {method}(self, other: '{name}') -> bool:\n{''.join(lines)}  return {'=' in symbol}\n"
    )
    unit.compile(method, source, "", 1, Names(), name, "method", None)
    return "method", method


def compile_named_tuple(kind: Any) -> str:
    """A named tuple as a class of programs; its name."""
    hints = typing.get_type_hints(kind)
    name = new_name(kind)
    unit.add_class(name, "tuple")
    _meanings.owners[name] = ClassOwner(kind, name, Scope)
    defaults = kind._field_defaults
    for field in kind._fields:
        text = _meanings.type_text(hints.get(field, Tensor))
        if text is None:
            raise RuntimeError(
                f"Unknown type annotation: the field '{field}' of {kind.__name__} is of no type "
                "that programs have"
            )
        default = (defaults[field],) if field in defaults else None
        unit.add_attribute(name, field, text, "attribute", default)
    compiled[kind] = name
    _program.python_classes[name] = kind
    return name


def compile_enum(kind: Any) -> str:
    """An enum as a class of programs; its name."""
    members = list(kind)
    if not members:
        raise RuntimeError(f"No enum values defined for: {kind.__name__}")
    types_of = {_meanings.type_of_value(member.value) for member in members}
    text = types_of.pop()
    if types_of or text is None:
        raise RuntimeError(
            f"Could not unify type list: the values of the enum '{kind.__name__}' are not all of "
            "one type"
        )
    name = compiled[kind] = new_name(kind)
    _program.python_classes[name] = kind
    unit.add_class(name, "enum")
    for member in members:
        unit.add_constant(name, member.name, member.value, text)
    return name


def interface_methods(kind: type) -> list[str]:
    """The names of the methods that an interface wants."""
    base = set(dir(nn.Module))
    return [
        name
        for name in dir(kind)
        if isinstance(inspect.getattr_static(kind, name), types.FunctionType)
        and (name not in base or name == "forward")
    ]


def compile_interface(kind: Any) -> str:
    """The common interface of several classes as one of programs; its name."""
    name = compiled[kind] = new_name(kind)
    unit.add_class(name, "module interface" if issubclass(kind, nn.Module) else "interface")
    owner = _meanings.owners[name] = ClassOwner(kind, name, Scope)
    owner.methods = interface_methods(kind)
    for method in owner.methods:
        function = inspect.getattr_static(kind, method)
        source, file, line = _source.source_of(function)
        unit.compile(method, source, file, line, Scope(function), name, "interface", None)
    return name
