"""What a module of programs has beside its slots: methods, properties and values of its class."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from typing import Any

from rushlight import nn
from rushlight.jit import _functions, _meanings, _source
from rushlight.jit._functions import LibraryScope, compile_method
from rushlight.jit._library import LAYERS
from rushlight.jit._marks import MarkedMethod
from rushlight.jit._meanings import Answer, Scope, unit
from rushlight.jit._script import ScriptModule

_compiled_overloads: dict[tuple[str, str], list[str]] = {}


def found_in(kind: type, name: str) -> tuple[Any, type[Scope]]:
    """What a class of modules has under a name, and the scope of its text; None: nothing.

    For layers of this library whose text cannot be compiled there is another text.
    """
    return found_among(kind.__mro__, name)


def found_among(kinds: tuple[type, ...], name: str) -> tuple[Any, type[Scope]]:
    """The same of the first of several classes that has the name."""
    for one in kinds:
        if one.__module__.startswith(f"{_meanings.ROOT}.nn."):
            other = LAYERS.get(one.__name__)
            if other is not None and name in vars(other):
                return vars(other)[name], LibraryScope
        if name in vars(one):
            found = vars(one)[name]
            return found.function if isinstance(found, MarkedMethod) else found, Scope
    return None, Scope


def is_named_function(value: Any) -> bool:
    """Whether a value is a function of Python with a text."""
    return isinstance(value, types.FunctionType)


def member_of(owner: Any, name: str) -> Answer:
    """The answer about a name of a module of a class of programs; methods are compiled now."""
    module = owner.module
    if name in vars(module):
        return _instance_member(owner, name)
    if isinstance(module, nn.RNNBase) and name == "_flat_weights":
        return _flat_weights(owner)
    for ending, part in (("_getter", "fget"), ("_setter", "fset")):
        if name.startswith("__") and name.endswith(ending):
            prop, scope = found_in(type(module), name[2 : -len(ending)])
            function = getattr(prop, part, None)
            if function is None:
                return None
            _compile(owner, name, function, scope)
            return "method", name
    found, scope = found_in(type(module), name)
    if found is not None and found is vars(nn.Module).get(name):
        return None
    if isinstance(found, property):
        return _property(owner, name, found)
    if isinstance(found, staticmethod):
        return _meanings.describe(found.__func__, name)
    if isinstance(found, classmethod) or found is None:
        return None
    if is_named_function(found):
        return _method(owner, name, found, scope)
    answer = _meanings.describe(found, name)
    if answer is None:
        raise RuntimeError(
            f"the attribute '{name}' of {type(module).__name__} is a {type(found).__name__}, which "
            "programs do not have"
        )
    return answer


def member_behind(owner: Any, kind: type, name: str) -> Answer:
    """The answer about what `super()` gives in a method of one of a module's classes."""
    kinds = _meanings.behind(type(owner.module).__mro__, kind)
    found, scope = found_among(kinds, name)
    if not is_named_function(found) or found is vars(nn.Module).get(name):
        return None
    own = f"__behind{len(kinds)}_{name}"
    if not unit.has_method(owner.name, own):
        _compile(owner, own, found, scope)
    return "method", own


def _instance_member(owner: Any, name: str) -> Answer:
    value = vars(owner.module)[name]
    if isinstance(value, types.MethodType) and value.__self__ is owner.module:
        return _method(owner, name, value.__func__, Scope)
    answer = _meanings.describe(value, name)
    if answer is None:
        raise RuntimeError(
            f"Module '{type(owner.module).__name__}' has no attribute '{name}' that compiled code "
            f"can use: it is a {type(value).__name__} whose type is not clear. Annotate it in the "
            "class, as in `name: List[int]`, if it is empty; leave it to a method marked with "
            "jit.ignore otherwise"
        )
    return answer


def _property(owner: Any, name: str, found: property) -> Answer:
    if name in getattr(owner.module, "__jit_unused_properties__", ()) or (
        _functions.modifier_of(found.fget) in ("unused", "ignore")
    ):
        raise RuntimeError(
            f"the property '{name}' is marked as unused: compiled code cannot read it"
        )
    getter = f"__{name}_getter"
    if not unit.has_method(owner.name, getter):
        _compile(owner, getter, found.fget, Scope)
    return "property", getter


def _method(owner: Any, name: str, function: Any, scope: type[Scope]) -> Answer:
    marked = _functions.overloads_of(function)
    if marked:
        return "overloads", tuple(("method", one) for one in _overloads(owner, function, marked))
    names = [name]
    if scope is LibraryScope:
        while found_in(type(owner.module), f"{name}__{len(names)}")[0] is not None:
            names.append(f"{name}__{len(names)}")
    for one in names:
        if not unit.has_method(owner.name, one):
            _compile(
                owner, one, function if one == name else found_in(type(owner.module), one)[0], scope
            )
    if len(names) > 1:
        return "overloads", tuple(("method", one) for one in names)
    return "method", name


def _compile(owner: Any, name: str, function: Any, scope: type[Scope]) -> None:
    signature = None
    if name == "__setstate__" and not function.__annotations__:  # it takes what __getstate__ gives
        getter, scope_of_getter = found_in(type(owner.module), "__getstate__")
        if not is_named_function(getter):
            raise RuntimeError(
                f"{type(owner.module).__name__}.__setstate__() takes what __getstate__() gives, "
                "and there is none: define it, or annotate the state"
            )
        _method(owner, "__getstate__", getter, scope_of_getter)
        state = unit.signature(f"{owner.name}.__getstate__")[1]
        arguments = list(inspect.signature(function).parameters)
        signature = f"def __setstate__({arguments[0]}, {arguments[1]}: {state}) -> None:\n  pass\n"
    compile_method(owner.name, name, function, scope, "method", signature)


def _overloads(owner: Any, function: Any, marked: list[Any]) -> list[str]:
    """Compiles a method once for each of its signatures; the names of the methods."""
    key = (owner.name, function.__name__)
    if key not in _compiled_overloads:
        names = []
        for number, one in enumerate(marked):
            name = f"{function.__name__}__{number}"
            text = _source.source_of(one)[0]
            scope = functools.partial(_overload_scope, one)
            compile_method(owner.name, name, function, scope, "method", text)
            names.append(name)
        _compiled_overloads[key] = names
    return _compiled_overloads[key]


def _overload_scope(overload: Any, function: Any) -> Scope:
    return Scope(function).of_overload(overload)


def _flat_weights(owner: Any) -> Answer:
    """The parameters of a recurrent layer, as a property whose text lists them."""
    if not unit.has_method(owner.name, "__flat_weights_getter"):
        listed = ", ".join(f"self.{name}" for name in owner.module._flat_weights_names)
        source = f"def _flat_weights(self) -> List[Tensor]:\n  return [{listed}]\n"
        scope = _meanings.Names()
        unit.compile("__flat_weights_getter", source, "", 1, scope, owner.name, "method", None)
    return "property", "__flat_weights_getter"


# ---- what is compiled of a module ----------------------------------------------------------------


def wanted_methods(module: nn.Module) -> list[str]:
    """`forward`, where the module has one, and what is exported."""
    kind = type(module)
    if isinstance(module, ScriptModule):
        marked = (name for name in dir(kind) if isinstance(getattr(kind, name, None), MarkedMethod))
        return list(marked)
    forward, _ = found_in(kind, "forward")
    own = is_named_function(forward) and forward is not vars(nn.Module).get("forward")
    if "forward" in vars(module):
        own = True
    names = ["forward"] if own and _functions.modifier_of(forward) != "ignore" else []
    for name in dir(kind):
        function = inspect.getattr_static(kind, name, None)
        if _functions.modifier_of(function) == "export" and name != "forward":
            names.append(name)
    return names


def python_members(module: nn.Module) -> typing.Iterator[tuple[str, Any]]:
    """What stays Python code of a module: methods that are marked with `ignore` or `unused`."""
    for name in dir(type(module)):
        found = inspect.getattr_static(type(module), name, None)
        if is_named_function(found) and _functions.modifier_of(found) in ("ignore", "unused"):
            yield name, found
