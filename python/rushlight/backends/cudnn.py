"""cuDNN, which is not used: this package has its own kernels for convolutions on GPUs.

Its flags can be set and read; they change nothing.
"""

from __future__ import annotations

from . import _flags

__all__ = ["flags", "is_available", "version"]

enabled: bool = True
benchmark: bool = False
benchmark_limit: int = 10
deterministic: bool = False
allow_tf32: bool = True
fp32_precision: str = "none"


def is_available():
    """Whether cuDNN is used: always False.

    Example:
        >>> torch.backends.cudnn.is_available()
        False
    """
    return False


def version():
    """The version of cuDNN: always None.

    Example:
        >>> torch.backends.cudnn.version() is None
        True
    """
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
