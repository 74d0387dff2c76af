"""Collectives for results of functions, which also pass on errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.distributed import _objects

if TYPE_CHECKING:
    from rushlight.distributed import ProcessGroup


__all__ = ["all_gather", "all_gather_object_enforce_type", "broadcast"]


def _same_type(one, other):
    return type(one) is type(other)


def all_gather_object_enforce_type(
    pg: ProcessGroup,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = _same_type,
) -> None:
    """Gather all processes' objects in a list; TypeError if one has another type than the first.

    Args:
        pg: the processes.
        object_list: becomes the list of objects.
        obj: that of this process.
        type_checker: whether two objects have one type.

    For an example see `distributed.all_gather_object`.
    """
    _objects.all_gather_object(object_list, obj, group=pg)
    for rank, other in enumerate(object_list):
        if not type_checker(object_list[0], other):
            raise TypeError(
                f"Object type at index {rank} is {type(other)}, while first object type is "
                f"{type(object_list[0])}"
            )


def _result(data_or_fn):
    """(What it is or returns, None), or (None, its error)."""
    if not callable(data_or_fn):
        return data_or_fn, None
    try:
        return data_or_fn(), None
    except Exception as error:
        return None, error


def broadcast(
    data_or_fn: Any,
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg: ProcessGroup | None = None,
):
    """Send a value or a function's result from one process to all; its error is raised in all.

    Args:
        data_or_fn: the value, or a function that gives it.
        success: False: an error is sent.
        stage_name: what is done, for messages.
        rank: the process that sends.
        pg: the processes; none by default: the value alone.

    For an example see `distributed.collective_utils.all_gather`.
    """
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    data, error = None, None
    if pg is None or pg.rank() == rank:
        data, error = _result(data_or_fn)
        if not success:
            error = RuntimeError("the process that broadcasts did not succeed")
    if pg is not None:
        sent = [(data, None if error is None else str(error), stage_name)]
        _objects.broadcast_object_list(sent, group=pg, group_src=rank)
        data, why, stage = sent[0]
        if why is not None and error is None:
            raise RuntimeError(f"Rank {rank} failed: stage {stage}, exception {why}")
    if error is not None:
        raise RuntimeError(f"Rank {rank} failed: stage {stage_name}, exception {error}") from error
    return data


def all_gather(
    data_or_fn: Any, stage_name: str | None = None, pg: ProcessGroup | None = None
) -> list[Any]:
    """Gather values or results of all processes; the first error is raised in all.

    Args:
        data_or_fn: the value, or a function that gives it.
        stage_name: what is done, for messages.
        pg: the processes; none by default: the value alone.

    Example:
        >>> from rushlight.distributed.collective_utils import all_gather
        >>> all_gather(lambda: 3)
        [3]
    """
    data, error = _result(data_or_fn)
    if pg is None:
        if error is not None:
            raise RuntimeError(f"failed: stage {stage_name}, exception {error}") from error
        return [data]
    every: list[Any] = [None] * pg.size()
    own = (data, None if error is None else str(error), stage_name)
    _objects.all_gather_object(every, own, group=pg)
    stages = {part[2] for part in every}
    if len(stages) > 1:
        raise RuntimeError(f"the processes are at different stages: {sorted(map(str, stages))}")
    for rank, part in enumerate(every):
        if part[1] is not None:
            raise RuntimeError(
                f"Rank {rank} failed: stage {stage_name}, exception {part[1]}"
            ) from (error)
    return [part[0] for part in every]
