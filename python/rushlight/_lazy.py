"""Names of a package that are loaded when they are first used.

    __getattr__, __dir__ = lazy(__name__, "data dlpack", {"dlpack": "from_dlpack to_dlpack"})

The package then has two modules, and two functions of the second. Type checkers do not see this:
they read the same names below `if TYPE_CHECKING`, and a test compares the two. What is not among
them, a name or a module, may be one that programs know from PyTorch: `rushlight.foreign` says so.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast


def lazy(
    package: str,
    modules: str = "",
    names: Mapping[str, str] | None = None,
    shown: Callable[[str], bool] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        modules: those of its modules that are its names, separated by spaces.
        names: what else it has from modules: by module, names separated by spaces.
        shown: which of its names `dir` shows; without it all but what it imports.
    """
    places = {module: (module, "") for module in modules.split()}
    for module, text in (names or {}).items():
        places.update((name, (module, name)) for name in text.split())
    space = vars(sys.modules[package])

    def __getattr__(name: str) -> Any:
        value: Any
        if name not in places:
            value = _foreign().name_of(package, name)
            space[name] = value
            return value
        module, attribute = places[name]
        value = importlib.import_module(f"{package}.{module}")
        if attribute:
            value = getattr(value, attribute)
        space[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(name for name in {*space, *places} if (shown or _is_own)(name))

    return __getattr__, __dir__


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


def _is_own(name: str) -> bool:
    return name not in ("Any", "TYPE_CHECKING", "annotations", "later", "lazy")


def _foreign() -> Any:
    return importlib.import_module("rushlight.foreign")


class _ForeignFinder:
    """The last to be asked for a module: it knows those that stand in no file of the package."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        return _foreign().find_spec(name) if name.startswith("rushlight.") else None


sys.meta_path.append(cast(Any, _ForeignFinder))
