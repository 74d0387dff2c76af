"""Modules of Python as modules of programs: attributes become slots, methods are compiled.

`program_object` is what a traced or scripted module begins with: the objects of programs that share
its tensors, without methods.
"""

from __future__ import annotations

import contextlib
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

import rushlight
from rushlight import nn
from rushlight.jit import Attribute, _meanings, _methods
from rushlight.jit._classes import is_plain
from rushlight.jit._meanings import unit
from rushlight.jit._program import ProgramModule
from rushlight.jit.frontend import FrontendError

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
PARAMETERS = (nn.ParameterList, nn.ParameterDict)
_OWN = frozenset(vars(nn.Module()))  # what every module's dict has
_classes: dict[Any, str] = {}  # the classes of programs, by what they hold


class Row(NamedTuple):
    """An attribute of a class of programs."""

    name: str
    kind: str  # parameter, buffer, module or attribute
    type: Any  # its text, or of a module its type


class Shape(NamedTuple):
    """What modules of one class have in common: they share the class of programs."""

    kind: type
    rows: tuple[Row, ...]
    constants: tuple[tuple[str, str, str], ...]  # name, type, value as text
    functions: tuple[tuple[str, Any], ...]  # callables among the attributes, and hooks
    plain: tuple[Any, ...]  # attributes that programs do not have


class ModuleOwner:
    """Answers for a class of modules; one of them shows what its constants and methods are."""

    def __init__(self, module: nn.Module, name: str, shape: Shape) -> None:
        self.module, self.name, self.shape = module, name, shape

    def submodules(self) -> list[str] | None:
        """The names in a list or dict of modules or parameters, in order; None of others."""
        if isinstance(self.module, PARAMETERS):
            return list(self.module._parameters)
        return list(self.module._modules) if isinstance(self.module, CONTAINERS) else None

    def member(self, name: str) -> Any:
        """What an object has beside slots, constants and methods that are compiled."""
        return _methods.member_of(self, name)

    def member_behind(self, kind: type, name: str) -> Any:
        """A method that `super()` gives in a method of one of its classes."""
        return _methods.member_behind(self, kind, name)


# ---- what becomes an attribute, and what a constant ----


def hints_of(module: nn.Module) -> dict[str, Any]:
    """The annotations in the bodies of its classes, those that can be evaluated."""
    out: dict[str, Any] = {}
    for kind in reversed(type(module).__mro__):
        own = vars(kind).get("__annotations__", {})
        space = vars(inspect.getmodule(kind) or rushlight)
        for name, hint in own.items():
            if not isinstance(hint, str):
                out[name] = hint
                continue
            try:
                out[name] = eval(hint, dict(space), dict(vars(kind)))
            except Exception:  # names that exist for type checkers alone
                if "Final" in hint:
                    out[name] = typing.Final
    return out


def constant_names(module: nn.Module, hints: dict[str, Any]) -> set[str]:
    """The attributes that programs take as constants.

    What the class says by `__constants__` and Final, and the settings of this library's layers:
    attributes that are called as parameters of their constructors.
    """
    names: set[str] = set(getattr(module, "__constants__", ()))
    for name, hint in hints.items():
        if typing.get_origin(hint) is typing.Final or hint is typing.Final:
            names.add(name)
    for kind in type(module).__mro__:
        if kind.__module__.startswith(f"{_meanings.ROOT}.nn.") and "__init__" in vars(kind):
            names |= set(inspect.signature(kind.__init__).parameters)
    return names - set(module._parameters) - set(module._buffers) - set(module._modules)


def _evaluated(hint: Any, value: Any) -> str | None:
    """The type of an attribute by its annotation, or by its value."""
    if hint is not None and hint is not typing.Final:
        text = _meanings.type_text(hint)
        if text is not None:
            return text
    text = _meanings.type_of_value(value)
    return text if text is not None else _class_of(value)


def _class_of(value: Any) -> str | None:
    """The class of programs that the class of an object becomes; None where it can be none."""
    kind = type(value)
    constructors = [vars(one)["__init__"] for one in kind.__mro__[:-1] if "__init__" in vars(one)]
    in_python = bool(constructors) and all(map(inspect.isfunction, constructors))
    if not in_python or isinstance(value, nn.Module) or not is_plain(kind):
        return None
    try:
        answer = _meanings.describe_class(kind)
    except (RuntimeError, FrontendError, OSError):  # it stays an attribute of Python alone
        return None
    return answer[1] if answer is not None and answer[0] == "class" else None


def shape_of(module: nn.Module, children: dict[str, Any], share: bool) -> tuple[Shape, dict]:
    """The shape, and the values of its rows by name; `children`: the classes of submodules."""
    hints = hints_of(module)
    constants = constant_names(module, hints)
    rows, values = [], {}
    known, functions, plain = [], [], []

    def add(name, kind, text, value):
        rows.append(Row(name, kind, text))
        values[name] = value

    for table, kind in ((module._parameters, "parameter"), (module._buffers, "buffer")):
        for name, value in table.items():
            hinted = _meanings.type_text(hints[name]) if name in hints else None
            text = "Tensor" if value is not None else "NoneType"
            optional = hinted is not None and hinted.startswith("Optional[")
            add(name, kind, "Optional[Tensor]" if optional else text, value)
    for name, value in vars(module).items():
        if (name in _OWN and name != "training") or name == "__constants__":
            continue
        if name in getattr(module, "__jit_ignored_attributes__", ()):
            plain.append(name)
            continue
        if isinstance(value, Attribute):
            add(name, "attribute", _meanings.type_text(value.type), value.value)
            continue
        text = _evaluated(hints.get(name), value)
        if name in constants and (text := _meanings.type_of_value(_frozen(value))) is not None:
            known.append((name, text, repr(value)))
        elif text is not None:
            add(name, "attribute", text, value)
        elif callable(value) and not isinstance(value, type):
            functions.append((name, value))
        else:
            plain.append(name)
    for name, child in module._modules.items():
        if child is None:
            add(name, "attribute", "NoneType", None)
        else:
            add(name, "module", interface_of(hints.get(name)) or children[name], child)
    for name, value in class_constants(module, constants).items():
        text = _meanings.type_of_value(_frozen(value))
        if text is not None:
            known.append((name, text, repr(value)))
    for table in (module._forward_pre_hooks, module._forward_hooks):
        functions += [("", hook) for hook in table.values()]
    shape = Shape(type(module), tuple(rows), tuple(known), tuple(functions), tuple(plain))
    return (shape if share else shape._replace(plain=(*plain, object()))), values


def interface_of(hint: Any) -> str | None:
    """The class of programs of an attribute that is annotated as an interface of modules."""
    if isinstance(hint, type) and getattr(hint, "__torch_script_interface__", False):
        return _meanings.type_text(hint)
    return None


def class_constants(module: nn.Module, names: set[str]) -> dict[str, Any]:
    """The constants that are attributes of the class."""
    out = {}
    for name in sorted(names):
        found = inspect.getattr_static(type(module), name, None)
        usable = found is not None and not isinstance(found, property | types.FunctionType)
        if usable and name not in vars(module) and name not in module._modules:
            out[name] = getattr(module, name)
    return out


def _frozen(value: Any) -> Any:
    """A constant as programs have it: lists are tuples."""
    if isinstance(value, list) and not isinstance(value, rushlight.Size):
        return tuple(map(_frozen, value))
    return value


# ---- classes and objects ----


def new_class(module: nn.Module, shape: Shape, where: Any = unit) -> str:
    """A new class of programs of this shape in a unit, without methods; its name."""
    name = _meanings.new_name(type(module))
    where.add_class(name, "module")
    for row in shape.rows:
        where.add_attribute(name, row.name, row.type, row.kind)
    for constant, text, _ in shape.constants:
        value = _frozen(getattr(module, constant))
        where.add_constant(name, constant, value, text)
    _meanings.owners[name] = ModuleOwner(module, name, shape)
    return name


class Made(NamedTuple):
    """The object of a program that a module has become."""

    handle: Any
    is_new: bool  # its class


def program_object(
    module: nn.Module, share: bool, known: dict[int, Made], where: Any = unit
) -> Made:
    """The object of a program that shares the tensors of a module; its submodules are such objects.

    Args:
        share: modules of one shape are of one class; without, each is of a class of its own.
        known: by the ids of modules, the objects that exist; it gains what is made.
        where: the unit of the classes.
    """
    if id(module) in known:
        return known[id(module)]
    if isinstance(module, ProgramModule):
        known[id(module)] = Made(module._c, False)
        return known[id(module)]
    if "_modules" not in vars(module):
        raise RuntimeError(
            f"'{type(module).__name__}' has not been initialized, did you forget to call "
            "'super().__init__()'?"
        )
    children = {
        name: program_object(child, share, known, where)
        for name, child in module._modules.items()
        if child is not None
    }
    shape, values = shape_of(
        module, {name: made.handle.type for name, made in children.items()}, share
    )
    name = _classes.get(shape) if share else None
    is_new = name is None
    if name is None:
        name = new_class(module, shape, where)
        if share:
            _classes[shape] = name
    handle = where.create(name)
    for row in shape.rows:
        if row.kind == "module":
            child = children[row.name].handle
            satisfy_interface(child.name, row.type)
            handle.set(row.name, child)
        else:
            handle.set(row.name, values[row.name])
    known[id(module)] = Made(handle, is_new)
    return known[id(module)]


def satisfy_interface(name: str, wanted: Any) -> None:
    """Compiles the methods that an interface wants of a class of modules."""
    interface = _meanings.owners.get(wanted) if isinstance(wanted, str) else None
    owner = _meanings.owners.get(name)
    if interface is not None and owner is not None:
        for method in interface.methods:
            owner.member(method)


@contextlib.contextmanager
def new_classes() -> Iterator[None]:
    """Where what is within fails, the classes that it has made are no module's any more."""
    before = set(_classes)
    try:
        yield
    except BaseException:
        for shape in set(_classes) - before:
            del _classes[shape]
        raise
