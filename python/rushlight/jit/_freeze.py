"""Frozen modules: attributes are constants of the program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight import _C
from rushlight.jit._program import ProgramModule


def freeze(
    module: Any, preserved: Iterable[str], optimize: bool, keep: bool = False
) -> ProgramModule:
    """The module with attributes as constants; see `jit.freeze`."""
    if not isinstance(module, ProgramModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input: compile the module with jit.script or "
            "jit.trace first"
        )
    if module.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode: call eval() first"
        )
    return ProgramModule._around(_C._freeze_program(module, list(preserved), optimize, keep), {})


def optimize_for_inference(module: Any, others: Iterable[str]) -> ProgramModule:
    """The frozen module, weights kept as kernels want them; see `jit.optimize_for_inference`."""
    if not isinstance(module, ProgramModule):
        raise RuntimeError("optimize_for_inference expects a ScriptModule: compile the module")
    return freeze(module.eval(), others, True, keep=True)
