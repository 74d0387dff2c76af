"""Modules of quantised networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy

if TYPE_CHECKING:
    from rushlight.ao.nn import intrinsic, qat, quantized  # noqa: F401
else:
    __getattr__, __dir__ = lazy(__name__, "intrinsic qat quantized")
