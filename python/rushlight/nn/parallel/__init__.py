"""Modules on several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy
from rushlight.nn.parallel.data_parallel import DataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]

if TYPE_CHECKING:
    from rushlight.nn.parallel import distributed  # noqa: F401
    from rushlight.nn.parallel.distributed import DistributedDataParallel
else:
    __getattr__, __dir__ = lazy(__name__, "distributed", {"distributed": "DistributedDataParallel"})
