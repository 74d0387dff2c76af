"""Apple's GPUs, which are not supported."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built():
    """Whether this build supports Apple's GPUs: always False.

    Example:
        >>> torch.backends.mps.is_built()
        False
    """
    return False


def is_available():
    """Whether an Apple GPU can be used: always False.

    Example:
        >>> torch.backends.mps.is_available()
        False
    """
    return False


def is_macos_or_newer(major: int, minor: int):
    """Whether this is macOS of a version or newer: always False.

    Args:
        major: the first number of the version.
        minor: the second one.

    Example:
        >>> torch.backends.mps.is_macos_or_newer(14, 0)
        False
    """
    return False


def is_macos13_or_newer(minor: int = 0):
    """Whether this is macOS 13 or newer: always False.

    Args:
        minor: the second number of the version.

    Example:
        >>> torch.backends.mps.is_macos13_or_newer()
        False
    """
    return False
