"""Grouping of items into lists, and back."""

from __future__ import annotations

from collections import defaultdict

from .._decorator import functional_datapipe
from ..datapipe import BatchedPipe, DataChunk, IterDataPipe

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(BatchedPipe, IterDataPipe):
    """Groups items into lists of a fixed length.

    Args:
        datapipe: the stream.
        batch_size: the number of samples in a batch.
        drop_last: leave out a last list that is shorter.
        wrapper_class: the type of the lists.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).batch(2))
        [[0, 1], [2, 3], [4]]
    """

    def __iter__(self):
        batch = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """Flattens lists of items.

    Args:
        datapipe: a stream of lists.
        unbatch_level: how many levels of lists are taken apart; -1: all.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([[1, 2], [3]]).unbatch())
        [1, 2, 3]
    """

    def __init__(self, datapipe, unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self):
        for item in self.datapipe:
            yield from self._split(item, self.unbatch_level)

    def _split(self, item, level):
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(item, (list, DataChunk))):
            yield item
            return
        if not isinstance(item, (list, DataChunk)):
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )
        for part in item:
            yield from self._split(part, level if level == -1 else level - 1)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Groups items with the same key into lists.

    Args:
        datapipe: the stream.
        group_key_fn: a function that gives the key of an item.
        keep_key: give pairs of a key and a list.
        buffer_size: the number of items to keep; when it is reached, the largest group that is
            large enough is returned.
        group_size: the number of items in a list; all of a group if None.
        guaranteed_group_size: the least number of items in a list that is returned because the
            buffer is full.
        drop_remaining: leave out the lists that are too short for that.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(["ape", "bee", "ant"]).groupby(lambda word: word[0]))
        [['ape', 'ant'], ['bee']]
    """

    def __init__(
        self,
        datapipe,
        group_key_fn,
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        least = guaranteed_group_size
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise ValueError("group_size must be > 0 and <= buffer_size")
        if least is not None and (group_size is None or not 0 < least <= group_size):
            raise ValueError("guaranteed_group_size must be > 0 and <= group_size")
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = group_size if least is None else least
        self.drop_remaining = drop_remaining

    def _group(self, key, items):
        return (key, DataChunk(items)) if self.keep_key else DataChunk(items)

    def __iter__(self):
        groups, waiting = defaultdict(list), 0
        for item in self.datapipe:
            key = self.group_key_fn(item)
            groups[key].append(item)
            waiting += 1
            if self.group_size is not None and len(groups[key]) == self.group_size:
                waiting -= self.group_size
                yield self._group(key, groups.pop(key))
            elif waiting == self.max_buffer_size:
                largest = max(groups, key=lambda k: len(groups[k]))
                items = groups.pop(largest)
                waiting -= len(items)
                if len(items) >= (self.guaranteed_group_size or 0):
                    yield self._group(largest, items)
                elif not self.drop_remaining:
                    raise RuntimeError(f"Failed to group items: {items}")
        for key, items in groups.items():
            if not self.drop_remaining or len(items) >= (self.guaranteed_group_size or 0):
                yield self._group(key, items)
