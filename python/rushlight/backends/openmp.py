"""OpenMP, whose runtime exists for extensions; rushlight's loops run on its own threads."""

__all__ = ["is_available"]


def is_available():
    """Whether OpenMP's runtime exists: always True.

    Example:
        >>> torch.backends.openmp.is_available()
        True
    """
    return True
