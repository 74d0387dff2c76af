"""Whether other packages are there."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Whether a module can be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.lru_cache
def dill_available() -> bool:
    """Whether dill is installed."""
    return _check_module_exists("dill")


@functools.lru_cache
def import_dill() -> ModuleType | None:
    """dill, or None; it may then no longer change how this process pickles."""
    if not dill_available():
        return None
    import dill  # pyright: ignore[reportMissingImports]

    dill.extend(use_dill=False)
    return dill
