"""What `dir` and completion show: what is public.

More can be reached: ops that belong to `linalg` or to an optimiser, names that old programs use,
what a module imports.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["dir_of", "dir_of_class", "is_shown"]

_IMPORTED = frozenset(
    {"Any", "TYPE_CHECKING", "annotations", "foreign", "later", "lazy", "namespace", "warn"}
)
# Ops that are functions elsewhere, or steps of optimisers and derivatives.
_PARTS = ("fft_", "linalg_", "special_"), ("_backward", "_step_")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# In-place functions that are methods alone in PyTorch, and what it has in a module.
_TOP = _names(
    "absolute_ bitwise_not_ digamma_ erfinv_ fork_rng get_printoptions has_cuda has_cudnn "
    "has_mkldnn has_mps index lgamma_ logical_not_ read_vitals set_vital sgn_ sign_ "
    "sparse_sampled_addmm unique_dim ComplexDoubleTensor ComplexFloatTensor"
)
# Functions that are no methods in PyTorch, or no longer.
_METHODS = _names(
    "_scaled_bernoulli_ has_names matrix_rank names nonzero_numpy one_hot rsub slice softmin"
)
_OURS = ("rushlight", "rushlight._C")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_shown(name: str) -> bool:
    """Whether a name of the package itself is shown."""
    starts, ends = _PARTS
    return not (
        name.startswith(starts)
        or name.endswith(ends)
        or name in _TOP
        or name in _IMPORTED
        or _is_private(name)
    )


def dir_of(module: str, hidden: str = "") -> Callable[[], list[str]]:
    """The `__dir__` of a module: its public names without what it imports and those of `hidden`."""
    space = vars(sys.modules[module])
    without = _IMPORTED.union(hidden.split())

    def __dir__() -> list[str]:
        return sorted(name for name in space if name not in without and not _is_private(name))

    return __dir__


def dir_of_class(cls: type, names: list[str]) -> list[str]:
    """The names of `Tensor` or a subclass without those of `Tensor` that are not public."""
    own = {name for base in cls.__mro__ if base.__module__ not in _OURS for name in vars(base)}
    return [name for name in names if name not in _METHODS or name in own]
