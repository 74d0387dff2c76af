"""The flag of the fast path of nn.MultiheadAttention."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_fastpath = True


def get_fastpath_enabled():
    """The value that was last set.

    For an example see `backends.mha.set_fastpath_enabled`.
    """
    return _fastpath


def set_fastpath_enabled(value: bool):
    """Set the flag; it has no effect on results.

    Args:
        value: the flag.

    Example:
        >>> torch.backends.mha.set_fastpath_enabled(True)
        >>> torch.backends.mha.get_fastpath_enabled()
        True
    """
    global _fastpath
    _fastpath = bool(value)
