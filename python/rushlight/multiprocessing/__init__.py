"""Python's multiprocessing, with tensors that processes share.

A tensor that is sent to another process, through a queue or as an argument, moves to memory that
both see: what one writes the other reads. `spawn` runs a function in several processes and raises
what it raises there.
"""

# ruff: noqa: F403

from __future__ import annotations

import multiprocessing
import multiprocessing.resource_tracker
from multiprocessing import *
from typing import TYPE_CHECKING

from rushlight.multiprocessing import reductions as reductions
from rushlight.multiprocessing.spawn import (
    ProcessContext as ProcessContext,
)
from rushlight.multiprocessing.spawn import (
    ProcessExitedException as ProcessExitedException,
)
from rushlight.multiprocessing.spawn import (
    ProcessRaisedException as ProcessRaisedException,
)
from rushlight.multiprocessing.spawn import (
    SpawnContext as SpawnContext,
)
from rushlight.multiprocessing.spawn import (
    spawn as spawn,
)
from rushlight.multiprocessing.spawn import (
    start_processes as start_processes,
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *multiprocessing.__all__,
        "ProcessContext",
        "ProcessExitedException",
        "ProcessRaisedException",
        "SpawnContext",
        "get_all_sharing_strategies",
        "get_sharing_strategy",
        "reductions",
        "set_sharing_strategy",
        "spawn",
        "start_processes",
    ]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"

reductions.init_reductions()


def get_all_sharing_strategies():
    """The names that `set_sharing_strategy` takes.

    Example:
        >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
        ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The name that was last set.

    Example:
        >>> torch.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """A no-op: memory is always shared by file descriptors.

    Args:
        new_strategy: one of `get_all_sharing_strategies()`.

    Example:
        >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"expected one of {sorted(_STRATEGIES)}, but got {new_strategy!r}")
    _strategy = new_strategy
