"""cuDNN: its flags can be set; it is used where there is a GPU."""

import contextlib

import rushlight

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
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    before = tuple(globals()[n] for n in names)
    globals().update({n: v for n, v in zip(names, given, strict=True) if v is not None})
    return before


@contextlib.contextmanager
def flags(
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
):
    """Within it these flags hold."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
