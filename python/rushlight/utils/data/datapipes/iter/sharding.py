"""Sharding of a stream over processes and workers."""

from __future__ import annotations

import enum

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, length_of

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(enum.IntEnum):
    """The groups over which a stream is sharded.

    Example:
        >>> from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
        >>> [group.name for group in SHARDING_PRIORITIES]
        ['DEFAULT', 'DISTRIBUTED', 'MULTIPROCESSING']
    """

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Keeps every n-th item, if a loader with workers (or `apply_sharding`) has set which.

    Args:
        source_datapipe: the stream.
        sharding_group_filter: the only group it minds; any if None.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> from rushlight.utils.data.graph_settings import apply_sharding
        >>> pipe = IterableWrapper(range(5)).sharding_filter()
        >>> apply_sharding(pipe, 2, 0)
        ShardingFilterIterDataPipe
        >>> list(pipe)
        [0, 2, 4]
    """

    def __init__(self, source_datapipe, sharding_group_filter=None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups = {}
        self.num_of_instances = 1
        self.instance_id = 0

    def is_shardable(self):
        """Whether the stream can be sharded: always True."""
        return True

    def apply_sharding(
        self, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT
    ):
        """Set the number of readers in a group, and the index of this one."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances"
                f"({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter in (None, group):
                count, number = self.groups[group]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self):
        for place, item in enumerate(self.source_datapipe):
            if place % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        count = length_of(self, self.source_datapipe)
        return count // self.num_of_instances + (self.instance_id < count % self.num_of_instances)
