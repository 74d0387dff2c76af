"""MKL, which is not used: OpenBLAS takes its part."""

__all__ = ["is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available():
    """False."""
    return False


class verbose:
    """Within it MKL would say what it does."""

    def __init__(self, enable) -> None:
        self.enable = enable

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False
