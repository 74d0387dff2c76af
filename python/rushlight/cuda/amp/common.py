"""Whether mixed precision is available."""

from rushlight import cuda

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available():
    """Whether there is no GPU for mixed precision.

    Example:
        >>> torch.cuda.amp.amp_definitely_not_available() == (not torch.cuda.is_available())
        True
    """
    return not cuda.is_available()
