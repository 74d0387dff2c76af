"""cuDNN: its flags can be set; it is used where there is a GPU."""

import rushlight

from . import _flags

__all__ = ["flags", "is_available", "version"]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available():
    """Whether there is a GPU that it works on."""
    return rushlight.cuda.is_available()


def version():
    """Its version; None where it is not there."""
    return


def is_acceptable(tensor):
    """Whether it would compute with this tensor."""
    return enabled and is_available() and tensor.device.type == "cuda"


def set_flags(
    _enabled=None,
    _benchmark=None,
    _benchmark_limit=None,
    _deterministic=None,
    _allow_tf32=None,
    _fp32_precision="none",
):
    """Sets those that are given; returns what they were."""
    given = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
    }
    return _flags.replace(globals(), given)


def flags(
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
):
    """Within it these flags hold."""
    given = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    return _flags.held(globals(), given)
