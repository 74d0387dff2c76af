"""PyTorch's names that lie elsewhere here, are refused, or do less: one manifest, by area.

A file of `tables` has any of these. Paths start below `rushlight`.

- `MODULES`: modules that programs import by a path where no file of ours lies. A text names the
  module that it is; a dict says by module which names it has from there ("NAME", "NAME=THEIRS", or
  "*" for all that the module lists).
- `REFUSED`: names that can be imported and asked about, and raise when they are called.
- `ACCEPTED`: parameters, flags and functions that are taken and do less than in PyTorch
  (`accepted.py`).

`find_spec` is asked for modules that nobody else finds, `name_of` for names that modules lack; both
by `rushlight._lazy`.
"""

from __future__ import annotations

import importlib
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any

from rushlight._raised import MissingNameError
from rushlight.foreign import refusals
from rushlight.foreign.tables import (
    compiler,
    devices,
    files,
    layers,
    others,
    parallel,
    quantised,
    vision,
)

TABLES = (devices, layers, files, compiler, quantised, parallel, vision, others)
MODULES: dict[str, str | dict[str, str]] = {
    path: row for table in TABLES for path, row in getattr(table, "MODULES", {}).items()
}
REFUSED = tuple(row for table in TABLES for row in getattr(table, "REFUSED", ()))

_WITH_NAMES = {*MODULES, *(row.where for row in REFUSED)}
# What modules lie in: those that have no row are packages of their modules alone.
_PACKAGES = {
    ".".join(path.split(".")[:i]) for path in _WITH_NAMES for i in range(1, path.count(".") + 1)
}
_MADE = _WITH_NAMES | _PACKAGES


def _path_of(module: str) -> str:
    return module.removeprefix("rushlight.")


# ---- modules ----


def find_spec(name: str) -> ModuleSpec | None:
    """Of a module of the tables; None for others."""
    path = _path_of(name)
    if path not in _MADE:
        return None
    package, _, child = name.rpartition(".")
    around = sys.modules.get(package)
    if around is not None and not isinstance(around, _Made) and _holds(around, child):
        around.__class__ = _Keeping
    loader: Any = _Loader()  # by its methods; the base class would import much
    return ModuleSpec(name, loader, origin=name, is_package=path in _PACKAGES)


class _Loader:
    """Makes modules of the tables, or gives those that they are."""

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        path = _path_of(spec.name)
        row = MODULES.get(path, {})
        if not isinstance(row, str) or path in _PACKAGES:
            return _Made(spec.name, f"Names of PyTorch's `torch.{path}`.", path, row)
        module = importlib.import_module(f"rushlight.{row}")
        spec.loader_state = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        if not isinstance(module, _Made):
            spec: Any = module.__spec__
            module.__spec__ = spec.loader_state


class _Keeping(types.ModuleType):
    """A module that keeps a function whose name a module has, too: `vision.ops.roi_align`."""

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system would put the module in the place of the function.
        if not (isinstance(value, types.ModuleType) and _holds(self, name)):
            super().__setattr__(name, value)


def _holds(module: types.ModuleType, name: str) -> bool:
    """Whether a name of a module is something else than a module."""
    if isinstance(module, _Made):
        return _place_of(vars(module)["_places"], name) is not None
    return name in vars(module) and not isinstance(vars(module)[name], types.ModuleType)


class _Made(_Keeping):
    """A module of names that stand in others."""

    def __init__(self, name: str, doc: str, path: str, row: str | dict[str, str]) -> None:
        super().__init__(name, doc)
        space = vars(self)
        places = {row: "*"} if isinstance(row, str) else row

        def __getattr__(name: str) -> Any:
            if name == "__all__":
                named = [n for place, words in places.items() for n in _names(place, words)]
                children = [p.rpartition(".")[2] for p in _MADE if p.rpartition(".")[0] == path]
                more = [] if isinstance(row, str) else [*refused_names(path), *children]
                value = [*dict.fromkeys([*named, *more])]
            elif (found := _place_of(places, name)) is not None:
                value = getattr(importlib.import_module(f"rushlight.{found[0]}"), found[1])
            elif isinstance(row, str) and name[:2] != "__" and f"{path}.{name}" not in _MADE:
                value = getattr(importlib.import_module(f"rushlight.{row}"), name)
            else:
                value = name_of(f"rushlight.{path}", name)
            space[name] = value
            return value

        space["__getattr__"] = __getattr__
        space["__dir__"] = lambda: sorted({*space, *__getattr__("__all__")})
        space["_places"] = places


def _names(place: str, words: str) -> list[str]:
    """The names that a row takes from a module of ours."""
    if words != "*":
        return [word.partition("=")[0] for word in words.split()]
    module = importlib.import_module(f"rushlight.{place}")
    public = (n for n, v in vars(module).items() if n[0] != "_" and type(v) is not type(module))
    return list(getattr(module, "__all__", public))


def _has(place: str, name: str) -> bool:
    """Whether a module of ours has something of that name that is no module."""
    held = getattr(importlib.import_module(f"rushlight.{place}"), name, None)
    return name[:2] != "__" and held is not None and not isinstance(held, types.ModuleType)


def _place_of(places: dict[str, str], name: str) -> tuple[str, str] | None:
    """The module of ours in which a name stands, and its name there."""
    for place, words in places.items():
        if words == "*" and _has(place, name):
            return place, name
        for word in words.split():
            mine, _, theirs = word.partition("=")
            if mine == name:
                return place, theirs or mine
    return None


# ---- refused names ----


def refused_names(path: str) -> list[str]:
    """Those of a module, by its path below `rushlight`."""
    rows = [row for row in REFUSED if row.where == path]
    return [name for row in rows for name in (*row.functions.split(), *row.classes.split())]


def name_of(module: str, name: str) -> Any:
    """What a module of ours has by the tables alone; AttributeError if it is nothing."""
    path = _path_of(module)
    for row in REFUSED:
        if row.where == path and name in row.functions.split():
            return refusals.function(f"torch.{path}.{name}", row.why)
        if row.where == path and name in row.classes.split():
            return refusals.kind(name, sys.modules[module].__name__, row.why)
    child = name if path == "rushlight" else f"{path}.{name}"
    if child in _MADE:
        return importlib.import_module(f"rushlight.{child}")
    raise MissingNameError(f"module {module!r} has no attribute {name!r}", module, name)
