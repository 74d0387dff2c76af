"""Ways to train with several processes: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "Join",
    "JoinHook",
    "Joinable",
]

Join = _refused.kind("Join", __name__)
Joinable = _refused.kind("Joinable", __name__)
JoinHook = _refused.kind("JoinHook", __name__)
