"""CUDA graphs: the names exist and raise, because graphs are not supported yet."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]


def is_current_stream_capturing() -> bool:
    """Whether the current stream is being captured in a graph: always False.

    Example:
        >>> torch.cuda.is_current_stream_capturing()
        False
    """
    return False


def _refusal(name: str) -> RuntimeError:
    return RuntimeError(f"rushlight has no torch.cuda.{name} yet: GPU work is not recorded")


class CUDAGraph:
    """A captured graph of GPU work. It cannot be made yet.

    Args:
        keep_graph: whether what was captured is kept after it was prepared.

    Raises:
        RuntimeError: always.

    Example:
        >>> torch.cuda.CUDAGraph()
        Traceback (most recent call last):
            ...
        RuntimeError: rushlight has no torch.cuda.CUDAGraph yet: GPU work is not recorded
    """

    def __init__(self, keep_graph: bool = False) -> None:
        raise _refusal("CUDAGraph")


class graph:
    """A context manager that would capture a graph; it raises.

    Args:
        cuda_graph: the graph.
        *args, **kwargs: a memory pool and a stream.

    Example:
        >>> torch.cuda.graph(None)
        Traceback (most recent call last):
            ...
        RuntimeError: rushlight has no torch.cuda.graph yet: GPU work is not recorded
    """

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        raise _refusal("graph")


def graph_pool_handle() -> NoReturn:
    """Raises: there are no memory pools of graphs.

    Example:
        >>> torch.cuda.graph_pool_handle()
        Traceback (most recent call last):
            ...
        RuntimeError: rushlight has no torch.cuda.graph_pool_handle yet: GPU work is not recorded
    """
    raise _refusal("graph_pool_handle")


def make_graphed_callables(callables: Any, sample_args: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: graphs cannot be captured.

    Args:
        callables: functions or modules.
        sample_args: arguments of each.
        *args, **kwargs: settings.

    Example:
        >>> torch.cuda.make_graphed_callables(torch.nn.ReLU(), (torch.ones(1),))
        Traceback (most recent call last):
            ...
        RuntimeError: rushlight has no torch.cuda.make_graphed_callables yet: ...
    """
    raise _refusal("make_graphed_callables")
