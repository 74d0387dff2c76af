"""Flags and questions about libraries behind ops, under PyTorch's names.

Flags of libraries that are not there can be set and read; they change nothing.
"""

import contextlib

from rushlight._lazy import lazy

with lazy(__name__):
    from . import (  # noqa: F401
        cpu,
        cuda,
        cudnn,
        cusparselt,
        mha,
        mkl,
        mkldnn,
        mps,
        nnpack,
        openmp,
        opt_einsum,
        quantized,
        xnnpack,
    )


def flags_frozen():
    """Whether setting flags raises: always False.

    Example:
        >>> torch.backends.flags_frozen()
        False
    """
    return False


@contextlib.contextmanager
def __allow_nonbracketed_mutation():
    """Accepted: flags can always be set."""
    yield


def disable_global_flags():
    """A no-op: flags can always be set.

    Example:
        >>> torch.backends.disable_global_flags()
    """
