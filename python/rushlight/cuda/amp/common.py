"""Whether mixed precision can be had."""

from rushlight import cuda

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available():
    """Whether there is no GPU to run it on."""
    return not cuda.is_available()
