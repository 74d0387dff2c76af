"""Helpers beside the framework: data loading and hook handles. Submodules load on first use."""

import importlib
import os

_NAMES = (
    "_python_dispatch _pytree benchmark checkpoint data deterministic dlpack flop_counter "
    "hooks model_zoo tensorboard"
)
_SUBMODULES = frozenset(_NAMES.split())

__all__ = ["cmake_prefix_path", *sorted(_SUBMODULES)]

# Where CMake finds the package: CMAKE_PREFIX_PATH for `find_package(rushlight)`.
cmake_prefix_path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "share", "cmake")


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def swap_tensors(t1, t2):
    """Exchange two tensors: their memory, geometry, gradients and attributes.

    Raises:
        RuntimeError: one has weak references or is part of a graph, where the exchange would be
            seen by others than their holders.
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
