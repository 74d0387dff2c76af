"""Functions that launched processes and their launcher share."""

from __future__ import annotations

from rushlight.distributed.elastic import multiprocessing

__all__ = ["multiprocessing"]
