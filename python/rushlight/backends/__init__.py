"""What stands behind ops, by PyTorch's names: which libraries there are, and flags to set.

Flags of libraries that are not there can be set and read; they change nothing.
"""

import importlib

_NAMES = frozenset(
    "cpu cuda cudnn cusparselt mha mkl mkldnn mps nnpack openmp opt_einsum quantized".split()  # noqa: SIM905
)

__all__ = ["flags_frozen", *sorted(_NAMES)]


def flags_frozen():
    """Whether setting flags raises: never."""
    return False


def disable_global_flags():
    """Accepted: flags stay settable."""


def __getattr__(name):
    if name in _NAMES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_NAMES})
