"""Parameters averaged now and then: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "ModelAverager",
    "PeriodicModelAverager",
]

ModelAverager = _refused.kind("ModelAverager", __name__)
PeriodicModelAverager = _refused.kind("PeriodicModelAverager", __name__)
