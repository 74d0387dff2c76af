"""With RUSHLIGHT_VERBOSE=1, a line on stderr where a program uses what has no effect."""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from rushlight.foreign.accepted import rows_of
from rushlight.foreign.rows import NO_EFFECT, Accepted, Flags

_noted: set[tuple[str, str]] = set()


def _note(row: Accepted | Flags, name: str, what: str) -> None:
    """Says once for a name of a row that it has no effect."""
    if (row.where, name) not in _noted:
        _noted.add((row.where, name))
        print(f"rushlight: {what} has no effect: {row.reason}", file=sys.stderr)


def _with_notes(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that says so when it is given what has no effect."""
    rows = [r for r in rows_of(path) if r.effect == NO_EFFECT and not isinstance(r, Flags)]
    if not rows:
        return function
    signature = inspect.signature(function)
    path = path.removesuffix(".__init__")

    @functools.wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(TypeError):  # of arguments that do not fit: the function raises it
            given = signature.bind(*args, **kwargs).arguments
            for row in rows:
                if not row.names:
                    _note(row, path, f"{path}()")
                for name in given.keys() & set(row.names.split()):
                    if given[name] is not signature.parameters[name].default:
                        _note(row, name, f"{path}({name}=...)")
        return function(*args, **kwargs)

    return noting


class _Flags(types.ModuleType):
    """A module whose flags say so when they are set."""

    def __setattr__(self, name: str, value: Any) -> None:
        path = self.__name__.removeprefix("rushlight.")
        for row in rows_of(path):
            if isinstance(row, Flags) and name in row.names.split():
                _note(row, name, f"{path}.{name}")
        super().__setattr__(name, value)


def _put_notes(module: types.ModuleType) -> None:
    path = module.__name__.removeprefix("rushlight.")
    if any(isinstance(row, Flags) for row in rows_of(path)):
        module.__class__ = _Flags
    spaces: list[tuple[str, Any]] = [(path, module)]
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            spaces.append((f"{path}.{name}", value))
    for prefix, space in spaces:
        for name, value in list(vars(space).items()):
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            if own and (name[0] != "_" or name in ("__init__", "__new__")):
                noting = _with_notes(f"{prefix}.{name}", value)
                if noting is not value:
                    setattr(space, name, noting)


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module, then puts notes into it."""

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        _put_notes(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of this package as Python does."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if not fullname.startswith("rushlight."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def watch() -> None:
    """Puts notes into all modules of the package, those that are loaded later, too."""
    for name, module in list(sys.modules.items()):
        if name.startswith("rushlight."):
            _put_notes(module)
    sys.meta_path.insert(0, _Finder())
