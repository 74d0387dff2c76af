"""Helpers beside the framework: data loading and hook handles. Submodules load on first use."""

import importlib

__all__ = ["data", "hooks"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
