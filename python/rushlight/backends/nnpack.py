"""NNPACK, which is not used."""

import contextlib

__all__ = ["flags", "is_available", "set_flags"]


def is_available():
    """False."""
    return False


def set_flags(_enabled):
    """Accepted; returns what was set before."""
    return (False,)


@contextlib.contextmanager
def flags(enabled=False):
    """Accepted."""
    yield
