"""Names of PyTorch's extension, `torch._C`, that are Python here; `_C` finds them."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.jit import ScriptFunction, ScriptModule, is_tracing

__all__ = ["ScriptFunction", "ScriptModule"]

_is_tracing = is_tracing


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
