"""Layers, losses and containers: `rushlight.nn`."""

import importlib

from . import functional, init, modules, parameter
from .modules import *  # noqa: F403
from .modules import __all__ as _layers
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *_layers,
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
]


def __getattr__(name):
    if name in ("attention", "parallel", "utils"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "DataParallel":
        from .parallel import DataParallel

        return DataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
