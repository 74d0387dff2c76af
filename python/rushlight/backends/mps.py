"""Apple's GPUs, which are not supported."""

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built():
    """Whether this build supports Apple's GPUs: always False."""
    return False


def is_available():
    """Whether an Apple GPU can be used: always False.

    Example:
        >>> torch.backends.mps.is_available()
        False
    """
    return False


def is_macos_or_newer(major, minor):
    """Whether this is macOS of a version or newer: always False."""
    return False


def is_macos13_or_newer(minor: int = 0):
    """Whether this is macOS 13 or newer: always False."""
    return False
