"""NNPACK, which is not used."""

from __future__ import annotations

from rushlight._accepted import flags_of

from . import _flags

__all__ = ["flags", "is_available", "set_flags"]

enabled: bool
globals().update(flags_of("backends.nnpack"))


def is_available():
    """False."""
    return False


def set_flags(_enabled):
    """Sets the flag; returns what it was."""
    return _flags.replace(globals(), {"enabled": _enabled})


def flags(enabled: bool = False):
    """Within it the flag holds."""
    return _flags.held(globals(), {"enabled": enabled})
