"""Splitting and merging of streams."""

from __future__ import annotations

from collections import deque
from typing import Any

from rushlight._warnings import warn

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, length_of, no_length

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


def _check_pipes(datapipes):
    if len(datapipes) == 0:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `IterDataPipe`")
    return datapipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """Concatenates streams.

    Args:
        datapipes: the streams.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import Concater, IterableWrapper
        >>> list(Concater(IterableWrapper("ab"), IterableWrapper("c")))
        ['a', 'b', 'c']
    """

    def __init__(self, *datapipes) -> None:
        self.datapipes = _check_pipes(datapipes)

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """Takes one item of each stream in turn, until one ends.

    Args:
        datapipes: the streams.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("ab").mux(IterableWrapper("xy")))
        ['a', 'x', 'b', 'y']
    """

    def __init__(self, *datapipes) -> None:
        self.datapipes = datapipes

    def __iter__(self):
        iterators = [iter(pipe) for pipe in self.datapipes]
        while iterators:
            items = []
            for iterator in iterators:
                try:
                    items.append(next(iterator))
                except StopIteration:
                    return
            yield from items

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes) * len(self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Takes tuples of one item of each stream, until one ends.

    Args:
        datapipes: the streams.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper("ab").zip(IterableWrapper(range(3))))
        [('a', 0), ('b', 1)]
    """

    def __init__(self, *datapipes) -> None:
        self.datapipes = _check_pipes(datapipes)

    def __iter__(self):
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes)


class _Branches:
    """A stream that is read once, for several readers, each with what it has not read yet.

    Args:
        name: the name of the class in messages.
        datapipe: the stream.
        count: the count of the readers.
        buffer_size: how many items may wait, in all or for the reader that is behind; -1: any.
        branch_of: a function that says which reader an item is for; all of them if None.
        drop_none: leave out items of which it says None.
    """

    def __init__(self, name, datapipe, count, buffer_size, branch_of, drop_none=False) -> None:
        if buffer_size < 0:
            warn(f"{name} has no limit: what one branch is ahead of another stays in memory")
        self.name = name
        self.datapipe = datapipe
        self.count = count
        self.buffer_size = buffer_size
        self.branch_of = branch_of
        self.drop_none = drop_none
        self.begin()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None}

    def begin(self) -> None:
        """Read from the beginning, all readers."""
        self._source = None
        self.waiting = [deque() for _ in range(self.count)]
        self.started = [False] * self.count

    def next(self, branch):
        """The next item for a reader."""
        while not self.waiting[branch]:
            if self._source is None:
                self._source = iter(self.datapipe)
            self._sort(next(self._source))
        return self.waiting[branch].popleft()

    def _sort(self, item):
        if self.branch_of is None:
            for waiting in self.waiting:
                waiting.append(item)
            most = max(len(waiting) for waiting in self.waiting) - 1
        else:
            branch = self.branch_of(item)
            if branch is None and self.drop_none:
                return
            if branch is None or not 0 <= branch < self.count:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.count - 1}. "
                    f"{branch} is returned."
                )
            self.waiting[branch].append(item)
            most = sum(len(waiting) for waiting in self.waiting)
        if 0 <= self.buffer_size < most:
            raise BufferError(
                f"{self.name} buffer overflow, buffer size {self.buffer_size} is insufficient."
            )


class _ChildDataPipe(IterDataPipe):
    """One of the readers."""

    def __init__(self, main_datapipe, instance_id) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def reset(self) -> None:
        # Whoever begins again lets all begin again.
        if self.main_datapipe.started[self.instance_id]:
            self.main_datapipe.begin()
        self.main_datapipe.started[self.instance_id] = True

    def __iter__(self):
        while True:
            try:
                item = self.main_datapipe.next(self.instance_id)
            except StopIteration:
                return
            yield item

    def __len__(self) -> int:
        if self.main_datapipe.branch_of is not None:
            raise no_length(self)
        return length_of(self, self.main_datapipe.datapipe)


def _children(branches: _Branches) -> list[IterDataPipe]:
    return [_ChildDataPipe(branches, number) for number in range(branches.count)]


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Copies a stream: a list of streams, each with all items.

    Args:
        datapipe: the stream.
        num_instances: how many.
        buffer_size: the number of items that one pipe may be ahead of another; -1 for no limit.
        copy: "shallow" or "deep": each gets copies of the items.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> first, second = IterableWrapper(range(2)).fork(2)
        >>> list(first), list(second)
        ([0, 1], [0, 1])
    """

    def __new__(cls, datapipe, num_instances: int, buffer_size: int = 1000, copy=None):
        if num_instances < 1:
            raise ValueError(
                f"Expected `num_instances` larger than 0, but {num_instances} is found"
            )
        if buffer_size == 0:
            raise ValueError("Expected `buffer_size` larger than 0, or -1 for any size")
        if num_instances == 1:
            return [datapipe]
        children = _children(_Branches(cls.__name__, datapipe, num_instances, buffer_size, None))
        if copy is None:
            return children
        import copy as copies

        functions = {"shallow": copies.copy, "deep": copies.deepcopy}
        if copy not in functions:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of {functions}")
        return [child.map(functions[copy]) for child in children]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Splits a stream: a list of streams, among which the items are divided.

    Args:
        datapipe: the stream.
        num_instances: how many.
        classifier_fn: a function that gives the number of the stream for an item.
        drop_none: leave out items for which it gives None.
        buffer_size: how many items may wait; -1: any number.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> even, odd = IterableWrapper(range(5)).demux(2, lambda n: n % 2)
        >>> list(even), list(odd)
        ([0, 2, 4], [1, 3])
    """

    def __new__(
        cls,
        datapipe,
        num_instances: int,
        classifier_fn,
        drop_none: bool = False,
        buffer_size: int = 1000,
    ):
        if num_instances < 1:
            raise ValueError(
                f"Expected `num_instances` larger than 0, but {num_instances} is found"
            )
        if buffer_size == 0:
            raise ValueError("Expected `buffer_size` larger than 0, or -1 for any size")
        return _children(
            _Branches(cls.__name__, datapipe, num_instances, buffer_size, classifier_fn, drop_none)
        )
