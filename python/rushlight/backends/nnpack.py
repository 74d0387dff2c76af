"""NNPACK, which is not used."""

from __future__ import annotations

from . import _flags

__all__ = ["flags", "is_available", "set_flags"]

enabled: bool = False


def is_available():
    """Whether NNPACK is used: always False.

    Example:
        >>> torch.backends.nnpack.is_available()
        False
    """
    return False


set_flags, flags = _flags.functions(globals(), enabled=False)
