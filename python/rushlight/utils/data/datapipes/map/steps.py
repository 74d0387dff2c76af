"""Steps over samples with indices."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import BatchedPipe, MapDataPipe, ShuffledPipe, length_of

__all__ = [
    "BatcherMapDataPipe",
    "ConcaterMapDataPipe",
    "MapperMapDataPipe",
    "SequenceWrapperMapDataPipe",
    "ShufflerIterDataPipe",
    "ZipperMapDataPipe",
]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The items of a sequence or a mapping.

    Args:
        sequence: the sequence or mapping to index.
        deepcopy: look into a copy.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper({"a": 1})["a"]
        1
    """

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self) -> int:
        return length_of(self, self.sequence)


@functional_datapipe("batch")
class BatcherMapDataPipe(BatchedPipe, MapDataPipe):
    """Groups consecutive samples into lists.

    Args:
        datapipe: the samples.
        batch_size: the number of samples in a batch.
        drop_last: leave out a last list that is shorter.
        wrapper_class: the type of the lists.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper(range(5)).batch(2)[1]
        [2, 3]
    """

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])


class _Joined(MapDataPipe):
    """Of several datasets."""

    def __init__(self, *datapipes) -> None:
        if len(datapipes) == 0:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(_Joined):
    """Concatenates datasets.

    Args:
        datapipes: the datasets.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper("ab").concat(SequenceWrapper("c"))[2]
        'c'
    """

    def __getitem__(self, index):
        before = 0
        for pipe in self.datapipes:
            if index - before < len(pipe):
                return pipe[index - before]
            before += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """Applies a function to each sample.

    Args:
        datapipe: the samples.
        fn: the function.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper(range(5)).map(lambda n: n * n)[3]
        9
    """

    def __init__(self, datapipe: Any, fn=lambda sample: sample) -> None:
        self.datapipe = datapipe
        self.fn = fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


@functional_datapipe("zip")
class ZipperMapDataPipe(_Joined):
    """Takes tuples of the samples of several datasets at one index.

    Args:
        datapipes: the datasets.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper("ab").zip(SequenceWrapper("xy"))[1]
        ('b', 'y')
    """

    def __getitem__(self, index):
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes)


class ShufflerIterDataPipe(ShuffledPipe):
    """A stream of the samples in random order.

    Args:
        datapipe: the samples.
        indices: of those that are wanted; 0, 1, 2, … if None.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> sorted(SequenceWrapper(range(3)).shuffle())
        [0, 1, 2]
    """

    def __init__(self, datapipe: Any, *, indices: Sequence[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        super().__init__()

    def __iter__(self):
        order = self.indices
        if self._enabled:
            # From the end, as PyTorch reads it.
            order = reversed(self._rng.sample(self.indices, len(self.indices)))
        for index in order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
