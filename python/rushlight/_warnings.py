"""`warn`: warnings that name the line of the program, however deep in the package they arise."""

from __future__ import annotations

import os
import sys
import warnings

__all__ = ["warn"]

_PACKAGE = os.path.dirname(__file__) + os.sep
# Modules that call functions of the package for a program: what `with`, decorators and imports are.
_BETWEEN = frozenset({"contextlib", "functools", "importlib", "importlib._bootstrap"})
_GENERATED = "<eval_with_key>"  # code that fx has written


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """`warnings.warn` at the innermost frame that is a program's; C++ warns by this, too.

    Where there is none, as in a thread of the package, it is the outermost frame.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__") or "<unknown>",
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _is_ours(frame):
    filename = frame.f_code.co_filename
    return (
        filename.startswith((_PACKAGE, _GENERATED)) or frame.f_globals.get("__name__") in _BETWEEN
    )
