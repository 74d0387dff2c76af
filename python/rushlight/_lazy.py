"""Names of a package that are loaded when they are first used.

    with lazy(__name__):
        from rushlight.utils import data
        from rushlight.utils.dlpack import from_dlpack, to_dlpack

Imports of such a block are noted instead of run: `rushlight.utils` then has a module and two
functions of another, and has loaded neither. Type checkers read the block as it stands. What is not
among these names may be one that programs know from PyTorch: `rushlight.foreign` says so.
"""

from __future__ import annotations

import _thread
import builtins
import functools
import importlib
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import PathFinder, SourceFileLoader
from typing import Any, cast


class _Noted:
    """Where a name stands; an imported name is this until its block ends."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name


class _Notes:
    """What an import of the block gives in the place of a module: names are noted."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> _Noted:
        return _Noted(self._module, name)


# The namespaces of packages that are within a block, in whatever thread; while there are any,
# `_noting_import` stands in the place of Python's own `__import__`.
_open: list[dict[str, Any]] = []
_opening = _thread.allocate_lock()
_python_import = builtins.__import__


def _noting_import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (), level: int = 0
) -> Any:
    if not any(space is globals for space in _open):
        return _python_import(name, globals, locals, fromlist, level)
    if not fromlist or "*" in fromlist:
        raise ImportError(f"import {name}: a lazy block has `from module import name` alone")
    package = globals["__package__"].split(".")
    base = package[: len(package) + 1 - level] if level else []
    return _Notes(".".join([*base, name] if name else base))


class lazy:  # it stands where imports do
    """Gives a package names that are loaded when they are first used.

    Args:
        package: its `__name__`.
        names: those that are no text of its file: by module, separated by spaces.
        shown: which of its names `dir` shows; without it those that are public.
    """

    def __init__(
        self,
        package: str,
        names: Mapping[str, str] | None = None,
        shown: Callable[[str], bool] | None = None,
    ) -> None:
        self._package = package
        self._shown = shown
        self.places = {
            name: _Noted(module, name)
            for module, text in (names or {}).items()
            for name in text.split()
        }
        self._space = vars(sys.modules[package])
        self._space.update(__getattr__=self._get, __dir__=self._list)

    def __enter__(self) -> None:
        global _python_import
        with _opening:
            if not _open:
                _python_import = builtins.__import__
                builtins.__import__ = _noting_import
            _open.append(self._space)

    def __exit__(self, *_: object) -> None:
        with _opening:
            _open[:] = [space for space in _open if space is not self._space]
            if not _open:
                builtins.__import__ = _python_import
        noted = {name: v for name, v in self._space.items() if isinstance(v, _Noted)}
        for name in noted:
            del self._space[name]
        self.places.update(noted)

    def _get(self, name: str) -> Any:
        place = self.places.get(name)
        if place is None:
            value = foreign_name(self._package, name)
        elif place.module == self._package:
            value = importlib.import_module(f"{place.module}.{place.name}")
        else:
            value = getattr(importlib.import_module(place.module), place.name)
        self._space[name] = value
        return value

    def _list(self) -> list[str]:
        if self._shown is not None:
            return sorted(filter(self._shown, {*self._space, *self.places}))
        later_names = (name for name in self.places if not name.startswith("_"))
        return sorted({*public_names(self._space), *later_names})


class later:  # it stands where an import would
    """A module that is imported when it is first asked for something; called, it gives the module.

        storage = later("rushlight.storage")

    For what a file needs that itself needs the file; such names stand below its imports.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self) -> Any:
        return importlib.import_module(self._name)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


def public_names(space: dict[str, Any]) -> list[str]:
    """What `dir` shows of a module: `__all__` and the modules of a package.

    Without `__all__` all that it has of ours. More can be reached: what it imports, and names that
    begin with a line.
    """
    package = space["__name__"]
    found = {name for name in space if name.startswith("__")}.union(space.get("__all__", ()))
    for name, value in list(space.items()):
        if isinstance(value, types.ModuleType):
            is_own = value.__name__ == f"{package}.{name}"
        else:
            home = str(getattr(value, "__module__", None))
            is_ours = home.partition(".")[0] == "rushlight" and home != __name__
            is_own = is_ours and "__all__" not in space
        if is_own and not name.startswith("_"):
            found.add(name)
    return sorted(found)


def foreign_name(module: str, name: str) -> Any:
    """What a module of ours has by the manifest alone; AttributeError if it is nothing.

    At imports Python asks for `__path__`, and for modules that it is about to load: no reason to
    load the manifest.
    """
    if name.startswith("__") or ("rushlight.foreign" not in sys.modules and _is_file(module, name)):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return _foreign().name_of(module, name)


def _is_file(package: str, name: str) -> bool:
    """Whether a package has a module of that name, which nobody has loaded yet."""
    place = getattr(sys.modules[package], "__path__", None)
    return place is not None and PathFinder.find_spec(f"{package}.{name}", place) is not None


def _foreign() -> Any:
    return importlib.import_module("rushlight.foreign")


class _ForeignFinder:
    """The last to be asked for a module: it knows those that stand in no file of the package."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        return _foreign().find_spec(name) if name.startswith("rushlight.") else None


class _Loader(SourceFileLoader):
    """Loads a file; its module then shows what is public, unless it says itself what it shows."""

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        space = vars(module)
        space.setdefault("__dir__", functools.partial(public_names, space))


class _FileFinder:
    """Asked before Python itself: it knows the files of the package."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("rushlight."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(name, spec.loader.path)
        return spec


sys.meta_path.append(cast(Any, _ForeignFinder))
_files = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
sys.meta_path.insert(_files, cast(Any, _FileFinder))
