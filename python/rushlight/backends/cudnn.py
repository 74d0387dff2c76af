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


def set_flags(
    _enabled=None,
    _benchmark=None,
    _benchmark_limit=None,
    _deterministic=None,
    _allow_tf32=None,
    _fp32_precision=None,
):
    """Sets those that are given; returns what they were."""
    given = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
        "fp32_precision": _fp32_precision,
    }
    return _flags.replace(globals(), given)


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit=10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
):
    """Within it these flags hold."""
    given = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
    }
    return _flags.held(globals(), given)
