"""The unpickler of files that are data alone, as a module in the place of `pickle`."""

from __future__ import annotations

import io
import pickle
from typing import Any

from rushlight._files import safe_load as _safe_load
from rushlight._files.safe_load import SafeObjects
from rushlight._files.safe_load import add_safe_globals as _add_safe_globals
from rushlight._files.safe_load import clear_safe_globals as _clear_safe_globals
from rushlight._files.safe_load import get_safe_globals as _get_safe_globals
from rushlight._files.safe_load import safe_globals as _safe_globals

__all__ = [
    "Unpickler",
    "_add_safe_globals",
    "_clear_safe_globals",
    "_get_allowed_globals",
    "_get_safe_globals",
    "_get_user_allowed_globals",
    "_remove_safe_globals",
    "_safe_globals",
    "get_globals_in_pkl",
    "load",
]


class Unpickler:
    """Reads an object that is plain data: what a file may name and call is `load`'s of tensors.

    Args:
        file: one that is open for reading.
        encoding: of strings that Python 2 wrote.
    """

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        self._file, self._encoding = file, encoding

    def load(self) -> Any:
        """The object; the file stands behind it then, where it can seek.

        Raises:
            pickle.UnpicklingError: it is more than data.
        """
        data = self._file.read()
        loaded, used = SafeObjects(self.persistent_load, self._encoding).read(data)
        if used < len(data):
            self._file.seek(used - len(data), io.SEEK_CUR)
        return loaded

    def persistent_load(self, pid: Any) -> Any:
        """What an id stands for, for those to say who know."""
        raise pickle.UnpicklingError(f"the pickle has an id that nobody knows: {pid!r}")


def load(file: Any, *, encoding: str = "ASCII") -> Any:
    """Reads an object that is plain data from an open file."""
    return Unpickler(file, encoding=encoding).load()


def get_globals_in_pkl(file: Any) -> set[str]:
    """The full names of functions and classes that a pickle in an open file mentions."""
    return set(_safe_load.globals_named(file.read()))


def _remove_safe_globals(globals_to_remove: list[Any]) -> None:
    """Forgets some of what `add_safe_globals` has added."""
    for _, name in map(_safe_load._global_name, globals_to_remove):
        _safe_load._safe_globals.pop(name, None)


def _get_user_allowed_globals() -> dict[str, Any]:
    """What `add_safe_globals` has added, by its full name."""
    return dict(_safe_load._safe_globals)


def _get_allowed_globals() -> dict[str, Any]:
    """What files may name without being allowed, by its full name."""
    return dict(_safe_load._NAMES)
