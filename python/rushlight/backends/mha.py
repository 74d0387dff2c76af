"""The fast path of nn.MultiheadAttention: a flag."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_fastpath = True


def get_fastpath_enabled():
    """What was last set."""
    return _fastpath


def set_fastpath_enabled(value):
    """Accepted; results are the same."""
    global _fastpath
    _fastpath = bool(value)
