"""`Adafactor`, by the module that PyTorch has it in."""

from __future__ import annotations

from rushlight.optim.adafactor import Adafactor

__all__ = ["Adafactor"]
