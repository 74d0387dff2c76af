"""Which sizes of the inputs stay open: `Dim` and what holds such things."""

from __future__ import annotations

from typing import Any

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]
