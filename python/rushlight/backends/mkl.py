"""MKL, which is not used: OpenBLAS does its work."""

from __future__ import annotations

__all__ = ["is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available():
    """Whether MKL is used: always False.

    Example:
        >>> torch.backends.mkl.is_available()
        False
    """
    return False


class verbose:
    """A context manager without effect: MKL is not used.

    Args:
        enable: means nothing here.

    Example:
        >>> level = torch.backends.mkl.VERBOSE_OFF
        >>> with torch.backends.mkl.verbose(level):
        ...     _ = torch.ones(2, 2) @ torch.ones(2, 2)
    """

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False
