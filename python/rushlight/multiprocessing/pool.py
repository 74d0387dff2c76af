"""Pools of processes whose arguments and results may hold tensors."""

from __future__ import annotations

from multiprocessing.pool import Pool

__all__ = ["Pool"]
