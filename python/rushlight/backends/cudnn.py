"""cuDNN, which is not used: this package has its own kernels for convolutions on GPUs.

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
    """Whether cuDNN is used: always False."""
    return False


def version():
    """The version of cuDNN: always None."""
    return


def is_acceptable(tensor):
    """Whether cuDNN can compute with a tensor: always False."""
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
