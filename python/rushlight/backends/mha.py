"""The flag of the fast path of nn.MultiheadAttention."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_fastpath = True


def get_fastpath_enabled():
    """The value that was last set."""
    return _fastpath


def set_fastpath_enabled(value):
    """Set the flag; it has no effect on results."""
    global _fastpath
    _fastpath = bool(value)
