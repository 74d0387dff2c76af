"""How states are cut, by the module that PyTorch has it in."""

from __future__ import annotations

from rushlight.distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
]
