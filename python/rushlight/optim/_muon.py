"""`Muon`, by the module that PyTorch has it in."""

from __future__ import annotations

from rushlight.optim.muon import Muon

__all__ = ["Muon"]
