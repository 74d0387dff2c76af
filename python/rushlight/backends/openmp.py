"""OpenMP, whose runtime is there for extensions; rushlight's loops run on a pool of its own."""

__all__ = ["is_available"]


def is_available():
    """True."""
    return True
