"""Utilities: data loading, hook handles and others. Submodules are loaded on first use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rushlight._lazy import lazy

if TYPE_CHECKING:
    from rushlight import Tensor

with lazy(__name__):
    from . import (  # noqa: F401
        _foreach_utils,
        _python_dispatch,
        _pytree,
        benchmark,
        checkpoint,
        collect_env,
        cpp_extension,
        data,
        deterministic,
        dlpack,
        flop_counter,
        hooks,
        module_tracker,
        serialization,
        tensorboard,
    )
    from ._history import History as History
    from ._summary import Summary as Summary
    from ._summary import summary as summary

__all__ = ["History", "Summary", "cmake_prefix_path", "summary", "swap_tensors"]

# Where CMake finds the package: CMAKE_PREFIX_PATH for `find_package(rushlight)`.
cmake_prefix_path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "share", "cmake")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swap two tensors: their memory, geometry, gradients and attributes.

    Args:
        t1, t2: the tensors.

    Raises:
        RuntimeError: one has weak references or is part of a graph, where the exchange would be
            seen by others than their holders.

    Example:
        >>> a, b = torch.zeros(1), torch.ones(2)
        >>> torch.utils.swap_tensors(a, b)
        >>> a, b
        (tensor([1., 1.]), tensor([0.]))
    """
    import weakref

    for t in (t1, t2):
        if weakref.getweakrefs(t):
            raise RuntimeError("Cannot swap tensors that have weak references")
        if not t.is_leaf:
            raise RuntimeError("Cannot swap tensors that are computed from others")
    from rushlight import _C

    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    _C._swap_tensors(t1, t2)
