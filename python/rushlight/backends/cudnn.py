"""cuDNN, which is not used: convolutions on GPUs are kernels of this package.

Its flags can be set and read; they change nothing.
"""

from __future__ import annotations

from rushlight._accepted import flags_of

from . import _flags

__all__ = ["flags", "is_available", "version"]

enabled: bool
benchmark: bool
benchmark_limit: int
deterministic: bool
allow_tf32: bool
fp32_precision: str
globals().update(flags_of("backends.cudnn"))


def is_available():
    """False."""
    return False


def version():
    """None."""
    return


def is_acceptable(tensor):
    """Whether it would compute with this tensor: never."""
    return False


set_flags, flags = _flags.functions(
    globals(),
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
)
