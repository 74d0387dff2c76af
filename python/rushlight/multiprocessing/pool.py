"""Pools of processes whose arguments and results may contain tensors."""

from __future__ import annotations

from multiprocessing.pool import Pool

__all__ = ["Pool"]
