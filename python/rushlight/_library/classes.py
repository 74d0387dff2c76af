"""`classes.NAMESPACE.NAME`: C++ classes that libraries bind with `torch::class_`."""

from __future__ import annotations

import types
from functools import cache
from typing import Any

from rushlight import _C
from rushlight._ops import ops

_PREFIX = "__torch__.torch.classes."


def _arguments(name, parameters, args, kwargs):
    """The values of all parameters; those without names are given by place."""
    if not parameters:
        if kwargs:
            raise TypeError(f"{name}() takes no keyword arguments")
        return args
    names = [p for p, _ in parameters]
    if len(args) > len(names):
        raise TypeError(f"{name}() takes {len(names)} arguments but {len(args)} were given")
    values = [*args, *(default for _, default in parameters[len(args) :])]
    for key, value in kwargs.items():
        if key not in names:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if names.index(key) < len(args):
            raise TypeError(f"{name}() got multiple values for argument '{key}'")
        values[names.index(key)] = value
    missing = [n for n, v in zip(names, values, strict=True) if v is ...]
    if missing:
        raise TypeError(f"{name}() is missing the arguments {', '.join(missing)}")
    return tuple(values)


def _method(full_name, place, name, doc, is_static, parameters):
    def method(self, *args, **kwargs):
        return _C._class_call(full_name, place, (self, *_arguments(name, parameters, args, kwargs)))

    def static(*args, **kwargs):
        return _C._class_call(full_name, place, _arguments(name, parameters, args, kwargs))

    made: Any = static if is_static else method
    made.__name__, made.__doc__ = name, doc
    return staticmethod(made) if is_static else made


def _property(full_name, place, is_written):
    def get(self):
        return _C._class_property(full_name, place, (self,))

    def put(self, value):
        _C._class_property(full_name, place, (self, value))

    return property(get, put if is_written else None)


def _without_constructor(cls, *args, **kwargs):
    raise RuntimeError(f"{cls.__name__} has no constructor for Python (def(torch::init<...>()))")


def _reduce(self, protocol=2):
    kind = type(self)
    if not hasattr(kind, "__getstate__cpp__"):
        raise RuntimeError(
            f"Tried to serialize object {_PREFIX}{kind.__module__}.{kind.__name__} which does not "
            "have a __getstate__ method defined!"
        )
    return restored, (kind._full_name, kind.__getstate__cpp__(self))


@cache
def class_of(full_name: str) -> type:
    """The Python class of a C++ class.

    Raises:
        RuntimeError: no library has bound it.
    """
    members = _C._class_members(full_name)
    if members is None:
        raise RuntimeError(
            f"The class '{full_name.removeprefix(_PREFIX)}' does not exist: a library that "
            "registers it by torch::class_ has to be loaded first"
        )
    methods, properties = members
    space, _, name = full_name.removeprefix(_PREFIX).partition(".")
    body: dict[str, Any] = {
        "__module__": space,
        "__new__": _without_constructor,
        "__reduce_ex__": _reduce,
        "_full_name": full_name,
    }
    for place, (method, doc, is_static, parameters) in enumerate(methods):
        made = _method(full_name, place, method, doc, is_static, parameters)
        if method == "__init__":
            body["__new__"] = _constructor(made.__func__)
            body["__init__"] = lambda self, *args, **kwargs: None
        elif method == "__getstate__":
            body["__getstate__cpp__"] = made
        elif method == "__setstate__":
            body["__setstate__cpp__"] = made
        else:
            body[method] = made
    for place, (field, is_written) in enumerate(properties):
        body[field] = _property(full_name, place, is_written)
    return type(name, (_C.ScriptObject,), body)


def _constructor(made):
    def new(cls, *args, **kwargs):
        return made(*args, **kwargs)

    return new


def restored(full_name: str, state: Any) -> Any:
    """An object from what its class keeps of it."""
    return class_of(full_name).__setstate__cpp__(state)


class _Space(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        space = self.__name__.rpartition(".")[2]
        return class_of(f"{_PREFIX}{space}.{name}")


class _Classes(types.ModuleType):
    """`rushlight.classes`."""

    def __init__(self) -> None:
        super().__init__("rushlight.classes")

    @property
    def loaded_libraries(self):
        """The paths of the libraries that `load_library` has loaded."""
        return ops.loaded_libraries

    def load_library(self, path):
        """Load a shared library, whose `torch::class_` blocks bind classes."""
        ops.load_library(path)

    def __getattr__(self, space):
        if space.startswith("__"):
            raise AttributeError(space)
        made = _Space(f"rushlight.classes.{space}")
        setattr(self, space, made)
        return made


classes: Any = _Classes()
