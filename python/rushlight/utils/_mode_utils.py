"""Contexts that programs which work with modes share."""

from __future__ import annotations

import contextlib

from rushlight.utils._python_dispatch import _disable_current_modes


@contextlib.contextmanager
def no_dispatch():
    """Within it no dispatch mode is active."""
    with _disable_current_modes():
        yield


def all_same_mode(modes) -> bool:
    """Whether all modes are one, and there is one."""
    return bool(modes) and all(mode is modes[0] for mode in modes)
