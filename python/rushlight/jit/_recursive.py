"""Programs around their handles, by the module that PyTorch has them in."""

from __future__ import annotations

from typing import Any

from rushlight.jit._program import ProgramModule


def wrap_cpp_module(cpp_module: Any) -> ProgramModule:
    """The module of a handle."""
    return ProgramModule._around(cpp_module, {})
