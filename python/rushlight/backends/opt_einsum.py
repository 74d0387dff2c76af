"""Flags for the order in which `einsum` multiplies more than two operands."""

from . import _flags

__all__ = ["flags", "get_opt_einsum", "is_available"]

enabled: bool = False
strategy: str | None = None


def is_available():
    """Whether the package opt_einsum is used: always False.

    Example:
        >>> torch.backends.opt_einsum.is_available()
        False
    """
    return False


def get_opt_einsum():
    """The package opt_einsum: always None.

    Example:
        >>> torch.backends.opt_einsum.get_opt_einsum() is None
        True
    """
    return


set_flags, flags = _flags.functions(globals(), enabled=None, strategy=None)
