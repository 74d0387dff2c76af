"""Uneven inputs, by the module that PyTorch has it in."""

from __future__ import annotations

from rushlight.distributed.algorithms import Join, Joinable, JoinHook

__all__ = [
    "Join",
    "JoinHook",
    "Joinable",
]
