"""The order in which `einsum` multiplies more than two operands: flags."""

import contextlib

__all__ = ["flags", "get_opt_einsum", "is_available"]

enabled = False
strategy: str | None = None


def is_available():
    """False: the package opt_einsum is not used."""
    return False


def get_opt_einsum():
    """None."""
    return


def set_flags(_enabled=None, _strategy=None):
    """Sets those that are given; returns what they were."""
    global enabled, strategy
    before = (enabled, strategy)
    enabled = enabled if _enabled is None else _enabled
    strategy = strategy if _strategy is None else _strategy
    return before


@contextlib.contextmanager
def flags(enabled=None, strategy=None):
    """Within it these flags hold."""
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        set_flags(*before)
