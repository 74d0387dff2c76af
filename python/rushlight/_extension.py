"""Names of PyTorch's extension, `torch._C`, that are Python here; `_C` finds them."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight._archive import PyTorchFileReader, PyTorchFileWriter
from rushlight.futures import Future
from rushlight.jit import ScriptFunction, ScriptModule, is_tracing
from rushlight.jit._graph import Graph, Node, TensorType, Type, Value
from rushlight.jit._trace import TracingState, state

__all__ = [
    "Future",
    "Graph",
    "Node",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "ScriptFunction",
    "ScriptModule",
    "TensorType",
    "TracingState",
    "Type",
    "Value",
]

_is_tracing = is_tracing


def _get_tracing_state() -> TracingState | None:
    """The trace that is being taken on this thread, or None."""
    return state()


def _get_accelerator(check: bool | None = None) -> Any:
    """The device of the accelerator; the CPU where there is none."""
    return rushlight.accelerator.current_accelerator() or rushlight.device("cpu")


def _get_default_device() -> str:
    """The name of the device that factories use."""
    return str(rushlight.get_default_device())


def _get_privateuse1_backend_name() -> str:
    """The name of a device of somebody's own: the one that PyTorch gives it at first."""
    return "privateuseone"


def _are_functorch_transforms_active() -> bool:
    """Whether a function runs that `vmap` maps, or that a transform differentiates."""
    from rushlight import _C, _vmap

    return bool(_vmap._levels) or _C._is_transforming()
