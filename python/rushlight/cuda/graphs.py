"""Recorded GPU work that is run again: the names, which refuse. Nothing is recorded yet."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]


def is_current_stream_capturing() -> bool:
    """Whether the current stream is being recorded: never."""
    return False


def _refusal(name: str) -> RuntimeError:
    return RuntimeError(f"rushlight has no torch.cuda.{name} yet: GPU work is not recorded")


class CUDAGraph:
    """Recorded work. Nothing makes one yet."""

    def __init__(self, keep_graph: bool = False) -> None:
        raise _refusal("CUDAGraph")


class graph:
    """Records what runs inside of it. Refused."""

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        raise _refusal("graph")


def graph_pool_handle() -> Any:
    """Refused: there is no memory of recorded work."""
    raise _refusal("graph_pool_handle")


def make_graphed_callables(callables: Any, sample_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: nothing is recorded."""
    raise _refusal("make_graphed_callables")
