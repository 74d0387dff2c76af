"""oneDNN by its former name: products and convolutions use it where the build has it.

Its flags can be set and read; they change nothing.
"""

from __future__ import annotations

from rushlight import _C
from rushlight._accepted import flags_of

from . import _flags

__all__ = ["flags", "is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2

enabled: bool
deterministic: bool
allow_tf32: bool
fp32_precision: str
globals().update(flags_of("backends.mkldnn"))


def is_available():
    """Whether this build has it."""
    return _C._libraries()["oneDNN"] is not None


def is_acl_available():
    """False."""
    return False


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision=None):
    """Sets those that are given; returns what they were."""
    given = {
        "enabled": _enabled,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
        "fp32_precision": _fp32_precision,
    }
    return _flags.replace(globals(), given)


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
):
    """Within it these flags hold."""
    given = {
        "enabled": enabled,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
    }
    return _flags.held(globals(), given)


class verbose:
    """Accepted; `RUSHLIGHT_VERBOSE=1` tells which kernels run."""

    def __init__(self, level) -> None:
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False
