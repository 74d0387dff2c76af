"""Steps that all processes run together, and lookup of tensors in states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight.distributed import _objects, _world
from rushlight.distributed._shard.sharded_tensor import ShardedTensor
from rushlight.distributed.checkpoint.api import (
    CheckpointException,
    _is_wrapped_exception,
    _wrap_exception,
)
from rushlight.distributed.checkpoint.metadata import MetadataIndex

if TYPE_CHECKING:
    from rushlight.distributed import ProcessGroup


__all__ = ["find_state_dict_object", "find_tensor_shard"]


def _failures(results) -> dict:
    return {i: r for i, r in enumerate(results) if _is_wrapped_exception(r)}


def _attempt(function, *args):
    """What a function returns, or what it raised."""
    try:
        return function(*args)
    except BaseException as error:
        return _wrap_exception(error)


class _DistWrapper:
    """The processes of a group, or this one alone; what one raises is raised on all.

    Args:
        group: the group.
        use_dist: whether other processes take part.
        coordinator_rank: the rank within the group that makes plans fit.
    """

    def __init__(self, group: ProcessGroup | None, use_dist: bool, coordinator_rank: int):
        self.group = group
        self.use_dist = use_dist
        self.coordinator_rank = coordinator_rank
        self.rank = _world.get_rank(group) if use_dist else 0
        self.is_coordinator = self.rank == coordinator_rank

    def get_rank(self) -> int:
        """This process's number."""
        return self.rank

    def get_world_size(self) -> int:
        """How many processes there are."""
        return _world.get_world_size(self.group) if self.use_dist else 1

    def broadcast_object(self, obj):
        """The coordinator's object."""
        holder = [obj]
        if self.use_dist:
            _objects.broadcast_object_list(
                holder, group=self.group, group_src=self.coordinator_rank
            )
        return holder[0]

    def gather_object(self, obj):
        """Everybody's objects, on the coordinator."""
        if not self.use_dist:
            return [obj]
        parts = [None] * self.get_world_size() if self.is_coordinator else None
        _objects.gather_object(obj, parts, group=self.group, group_dst=self.coordinator_rank)
        return parts

    def all_gather_object(self, obj) -> list:
        """Everybody's objects."""
        if not self.use_dist:
            return [obj]
        parts: list[Any] = [None] * self.get_world_size()
        _objects.all_gather_object(parts, obj, group=self.group)
        return parts

    def scatter_object(self, parts):
        """This process's object of the coordinator's list."""
        if not self.use_dist:
            return parts[0]
        mine: list[Any] = [None]
        _objects.scatter_object_list(
            mine,
            parts if self.is_coordinator else None,
            group=self.group,
            group_src=self.coordinator_rank,
        )
        return mine[0]

    def reduce_scatter(self, step: str, map_fun, reduce_fun):
        """`map_fun()` on all, `reduce_fun` of the results on one, and everybody its part."""
        parts = self.gather_object(_attempt(map_fun))
        results: list[Any] | None = None
        if self.is_coordinator:
            failures = _failures(parts)
            if not failures:
                made = _attempt(reduce_fun, parts)
                if _is_wrapped_exception(made):
                    failures = {self.rank: made}
                else:
                    results = list(made)
            if failures:
                results = [CheckpointException(step, failures)] * self.get_world_size()
        result = self.scatter_object(results)
        if isinstance(result, CheckpointException):
            raise result
        return result

    def all_reduce(self, step: str, map_fun, reduce_fun):
        """`map_fun()` on all, `reduce_fun` of the results on one, and everybody the result."""
        parts = self.gather_object(_attempt(map_fun))
        result: Any = None
        if self.is_coordinator:
            failures = _failures(parts)
            if not failures:
                result = _attempt(reduce_fun, parts)
                if _is_wrapped_exception(result):
                    failures = {self.rank: result}
            if failures:
                result = CheckpointException(step, failures)
        result = self.broadcast_object(result)
        if isinstance(result, CheckpointException):
            raise result
        return result

    def all_gather(self, step: str, map_fun) -> list:
        """What `map_fun()` returns on all."""
        results = self.all_gather_object(_attempt(map_fun))
        failures = _failures(results)
        if failures:
            raise CheckpointException(step, failures)
        return results

    def broadcast(self, step: str, map_fun):
        """What `map_fun()` returns on the coordinator."""
        result = None
        if self.is_coordinator:
            result = _attempt(map_fun)
            if _is_wrapped_exception(result):
                result = CheckpointException(step, {self.rank: result})
        result = self.broadcast_object(result)
        if isinstance(result, CheckpointException):
            raise result
        return result

    def barrier(self) -> None:
        """Wait for all."""
        if self.use_dist:
            _world._group(self.group).barrier().wait()


def find_tensor_shard(tensor: Any, index: MetadataIndex) -> rushlight.Tensor:
    """The piece of a tensor that this process has for an index.

    Args:
        tensor: the tensor.
        index: its key.

    For an example see `distributed.checkpoint.save`.
    """
    if isinstance(tensor, ShardedTensor):
        for shard in tensor.local_shards():
            if index.offset is None or tuple(shard.metadata.shard_offsets) == tuple(index.offset):
                return shard.tensor
        raise ValueError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'")
    if hasattr(tensor, "placements"):
        return tensor.to_local()
    if any(index.offset or ()):
        raise _not_sharded_error(index)
    return tensor


def find_state_dict_object(state_dict: Mapping[str, Any], index: MetadataIndex) -> Any:
    """The object of a state for an index.

    Args:
        state_dict: the state.
        index: its key.

    For an example see `distributed.checkpoint.save`.
    """
    try:
        found = state_dict[index.fqn]
    except KeyError:
        raise ValueError(f"Could not find FQN: '{index.fqn}'") from None
    if isinstance(found, (rushlight.Tensor, ShardedTensor)):
        return find_tensor_shard(found, index)
    if index.offset is not None:
        raise _not_sharded_error(index)
    return found


def _not_sharded_error(index: MetadataIndex) -> ValueError:
    return ValueError(
        f"FQN: '{index.fqn}' is not a ShardedTensor: it has no piece at '{index.offset}'"
    )


def _all_keys(local: dict, group=None) -> list[str]:
    """The names that the states of all processes have."""
    if not _world.is_initialized():
        return list(local)
    parts: list[Any] = [None] * _world.get_world_size(group)
    _objects.all_gather_object(parts, list(local), group=group)
    return list(dict.fromkeys(key for part in parts for key in part))
