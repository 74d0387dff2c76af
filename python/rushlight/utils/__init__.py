"""Helpers beside the framework: data loading and hook handles. Submodules load on first use."""

import importlib
import os

_SUBMODULES = frozenset(
    "_python_dispatch _pytree checkpoint data dlpack hooks".split()  # noqa: SIM905
)

__all__ = ["cmake_prefix_path", *sorted(_SUBMODULES)]

# Where CMake finds the package: CMAKE_PREFIX_PATH for `find_package(rushlight)`.
cmake_prefix_path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "share", "cmake")


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
