"""oneDNN by its former name: products, convolutions and pooling use it."""

import contextlib

__all__ = ["flags", "is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2

enabled = True
deterministic = False
allow_tf32 = True


def is_available():
    """True: it is part of the package."""
    return True


def is_acl_available():
    """False."""
    return False


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision="none"):
    """Sets those that are given; returns what they were."""
    names = ("enabled", "deterministic", "allow_tf32")
    before = tuple(globals()[n] for n in names)
    given = zip(names, (_enabled, _deterministic, _allow_tf32), strict=True)
    globals().update({n: v for n, v in given if v is not None})
    return before


@contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """Within it these flags hold."""
    before = set_flags(enabled, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)


class verbose:
    """Accepted; `RUSHLIGHT_VERBOSE=1` tells which kernels run."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False
