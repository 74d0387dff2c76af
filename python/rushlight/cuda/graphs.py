"""CUDA graphs: the names exist and raise, because graphs are not supported yet."""

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
    """Whether the current stream is being captured in a graph: always False."""
    return False


def _refusal(name: str) -> RuntimeError:
    return RuntimeError(f"rushlight has no torch.cuda.{name} yet: GPU work is not recorded")


class CUDAGraph:
    """A captured graph of GPU work. It cannot be made yet."""

    def __init__(self, keep_graph: bool = False) -> None:
        raise _refusal("CUDAGraph")


class graph:
    """A context manager that would capture a graph; it raises."""

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        raise _refusal("graph")


def graph_pool_handle() -> Any:
    """Raises: there are no memory pools of graphs."""
    raise _refusal("graph_pool_handle")


def make_graphed_callables(callables: Any, sample_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises: graphs cannot be captured."""
    raise _refusal("make_graphed_callables")
