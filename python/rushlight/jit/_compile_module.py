"""Modules of Python as modules of programs: attributes become slots, methods are compiled."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Any

from rushlight import _C, nn
from rushlight.jit import _compile as front
from rushlight.jit import _prelude
from rushlight.jit._program import ProgramModule

_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
_OWN = frozenset(vars(nn.Module()))  # what every module's dict has
_types: dict[Any, str] = {}  # the classes of programs, by what they hold


class _ModuleOwner:
    """Answers for a class of modules; one of them shows what its constants and methods are."""

    def __init__(self, module: nn.Module, name: str) -> None:
        self.module, self.name = module, name
        self.compiled: set[str] = set()

    def submodules(self):
        """The names in a list or dict of modules, in order; None of others."""
        return list(self.module._modules) if isinstance(self.module, _CONTAINERS) else None

    def member(self, name):
        """A method, compiled now, or a constant."""
        found = inspect.getattr_static(type(self.module), name, None)
        if isinstance(found, staticmethod):
            return front.describe(found.__func__, name)
        if isinstance(found, types.FunctionType):
            if name not in self.compiled:
                self.compile(found)
            return "method", name
        if name in vars(self.module) or found is not None:
            value = getattr(self.module, name)
            if isinstance(value, nn.Module) or isinstance(found, property):
                raise front.FrontendError(f"'{name}' of a module cannot be used by compiled code")
            answer = front.describe(value, name)
            if answer is None:
                raise front.FrontendError(
                    f"the attribute '{name}' is a {type(value).__name__} whose type is not clear: "
                    "annotate it in the class"
                )
            return answer
        return None

    def compile(self, function):
        """Compile one method."""
        modifier = getattr(function, "_torchscript_modifier", None)
        if modifier == "ignore":
            raise front.FrontendError(
                f"'{function.__name__}' is marked with jit.ignore: compiled code cannot call Python"
            )
        self.compiled.add(function.__name__)
        try:
            front._compile_method(self.name, function, front._Scope, modifier == "unused")
        except BaseException:
            self.compiled.discard(function.__name__)
            raise


def _constants_of(module) -> set[str]:
    names = set(getattr(module, "__constants__", ()))
    for kind in type(module).__mro__:
        for name, hint in vars(kind).get("__annotations__", {}).items():
            text = hint if isinstance(hint, str) else ""
            if typing.get_origin(hint) is typing.Final or hint is typing.Final or "Final" in text:
                names.add(name)
    return names


def _hints_of(module) -> dict[str, Any]:
    try:
        return typing.get_type_hints(type(module))
    except Exception:  # names that exist for type checkers alone
        return {}


def _rows(module, children):
    """[(name, kind, type, value)] of what becomes a slot, and the constants."""
    rows = []
    for table, kind in ((module._parameters, "parameter"), (module._buffers, "buffer")):
        for name, value in table.items():
            missing = value is None
            rows.append(
                (name, "attribute" if missing else kind, "NoneType" if missing else "Tensor", value)
            )
    rows.append(("training", "attribute", "bool", module.training))
    constants, names, hints = {}, _constants_of(module), _hints_of(module)
    for name, value in vars(module).items():
        if name in _OWN or name == "__constants__":
            continue
        text = front.type_of_value(value)
        if name in names and text is not None:
            constants[name] = value
            continue
        hinted = front.type_text(hints[name]) if name in hints else None
        if hinted is not None or text is not None:
            rows.append((name, "attribute", hinted or text, value))
    for name, child in children.items():
        rows.append((name, "module", child._c.name, child))
    return rows, constants


def script_module(module: nn.Module, known: dict) -> ProgramModule:
    """The program of a module, whose parameters and buffers it shares."""
    if isinstance(module, ProgramModule):
        return module
    if id(module) in known:
        return known[id(module)]
    if module._forward_hooks or module._forward_pre_hooks:
        raise RuntimeError(
            f"hooks of {type(module).__name__} cannot be compiled: remove them first"
        )
    children = {
        name: script_module(child, known)
        for name, child in module._modules.items()
        if child is not None
    }
    rows, constants = _rows(module, children)
    rows += [(n, "attribute", "NoneType", None) for n, c in module._modules.items() if c is None]
    key = (
        type(module),
        tuple(row[:3] for row in rows),
        tuple((name, repr(value)) for name, value in constants.items()),
    )
    fresh = key not in _types
    if fresh:
        _types[key] = _new_class(module, rows, constants)
    name = _types[key]
    handle = _C._script_object(name)
    for attribute, _, _, value in rows:
        if isinstance(value, front.rushlight.dtype | front.rushlight.memory_format):
            value = front._number_of(value)
        handle.set(attribute, value)
    if fresh:
        try:
            _compile_methods(module, front._owners[name])
        except BaseException:
            del _types[key]
            raise
    made = ProgramModule._around(handle, {child._c: child for child in children.values()})
    known[id(module)] = made
    return made


def _new_class(module, rows, constants):
    name = front._qualified(type(module))
    _C._script_class(name, "module")
    for attribute, kind, text, _ in rows:
        _C._script_attribute(name, attribute, text, kind)
    for constant, value in constants.items():
        _C._script_constant(name, constant, value)
    front._owners[name] = _ModuleOwner(module, name)
    return name


def _compile_methods(module, owner):
    """`forward`, where there is one, and what is exported."""
    kind = type(module)
    forward = kind.forward
    if kind in (nn.Sequential,):
        front._compile_method(owner.name, _prelude.Sequential.forward, front._PreludeScope)
        owner.compiled.add("forward")
    elif isinstance(forward, types.FunctionType) and forward is not nn.Module.forward:
        owner.member("forward")
    for name in dir(kind):
        function = inspect.getattr_static(kind, name, None)
        if getattr(function, "_torchscript_modifier", None) == "export":
            owner.member(name)
