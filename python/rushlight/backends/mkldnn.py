"""oneDNN under its former name: matrix products and convolutions use it if the build has it.

Its flags can be set and read; they change nothing.
"""

from __future__ import annotations

from rushlight import _C

from . import _flags

__all__ = ["flags", "is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2

enabled: bool = True
deterministic: bool = False
allow_tf32: bool = True
fp32_precision: str = "none"


def is_available():
    """Whether this build has oneDNN.

    Example:
        >>> torch.backends.mkldnn.is_available() in (True, False)
        True
    """
    return _C._libraries()["oneDNN"] is not None


def is_acl_available():
    """Whether oneDNN uses Arm's library: always False."""
    return False


set_flags, flags = _flags.functions(
    globals(), enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"
)


class verbose:
    """A context manager without effect; `RUSHLIGHT_VERBOSE=1` prints which kernels run.

    Args:
        level: means nothing here.

    Example:
        >>> level = torch.backends.mkldnn.VERBOSE_OFF
        >>> with torch.backends.mkldnn.verbose(level):
        ...     _ = torch.ones(2, 2) @ torch.ones(2, 2)
    """

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False
