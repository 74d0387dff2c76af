"""Names of a package that are loaded when they are first used.

    __getattr__, __dir__ = lazy(__name__, "data dlpack", {"dlpack": "from_dlpack to_dlpack"})

The package then has two modules, and two functions of the second. Type checkers do not see this:
they read the same names below `if TYPE_CHECKING`, and a test compares the two.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy(
    package: str,
    modules: str,
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
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = places[name]
        value: Any = importlib.import_module(f"{package}.{module}")
        if attribute:
            value = getattr(value, attribute)
        space[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(name for name in {*space, *places} if (shown or _is_own)(name))

    return __getattr__, __dir__


def _is_own(name: str) -> bool:
    return name not in ("Any", "TYPE_CHECKING", "annotations", "lazy")
