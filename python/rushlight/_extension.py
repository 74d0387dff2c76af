"""Names of PyTorch's extension, `torch._C`, that are Python here; `_C` finds them."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _refused
from rushlight._archive import PyTorchFileReader, PyTorchFileWriter
from rushlight.futures import Future
from rushlight.jit import ScriptFunction, ScriptModule, is_tracing

__all__ = ["Future", "PyTorchFileReader", "PyTorchFileWriter", "ScriptFunction", "ScriptModule"]

_is_tracing = is_tracing

# What graphs of TorchScript are made of.
_WHY = "it writes no graphs of TorchScript"
Graph = _refused.kind("Graph", "torch._C", _WHY)
Value = _refused.kind("Value", "torch._C", _WHY)


def _get_tracing_state() -> None:
    """What a running trace is at: None, as there is none."""


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
