"""Samplers: the order of samples."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Generic

import rushlight
from rushlight import _C

from .dataset import _Sample

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rushlight import Tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


def _positive(name: str, value):
    """An option that counts something."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, not {value!r}")
    return value


def _flag(name: str, value, error: type[Exception] = ValueError):
    """An option that is True or False."""
    if not isinstance(value, bool):
        raise error(f"{name} should be a boolean value, not {value!r}")
    return value


class Sampler(Generic[_Sample]):
    """An iterable of indices; subclasses define `__iter__`, and `__len__` if the length is
    known.

    Example:
        >>> class Backwards(torch.utils.data.Sampler):
        ...     def __iter__(self):
        ...         return iter([2, 1, 0])
        >>> list(torch.utils.data.DataLoader(["a", "b", "c"], sampler=Backwards(), batch_size=None))
        ['c', 'b', 'a']
    """

    def __iter__(self):
        raise NotImplementedError


class _InfiniteConstantSampler(Sampler):
    """Stands for the order of a stream, which has none to choose."""

    def __iter__(self):
        return itertools.repeat(None)


class SequentialSampler(Sampler):
    """The indices in order: 0, 1, 2, …

    Args:
        data_source: something with a length.

    Example:
        >>> list(torch.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """The indices in random order, or drawn with replacement.

    Args:
        data_source: something with a length.
        replacement: draw each index independently.
        num_samples: the number of indices to draw; the length of the data set if None.
        generator: source of randomness; one seeded from the default generator if None.

    Example:
        >>> sorted(torch.utils.data.RandomSampler("abc"))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: _C.Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = _flag("replacement", replacement, TypeError)
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            kind = type(data_source).__name__
            empty = f": the {kind} is empty; without samples leave shuffle out"
            raise ValueError(
                f"num_samples should be a positive integer value, not {self.num_samples!r}"
                + ("" if len(data_source) else empty)
            )

    @property
    def num_samples(self):
        """The number of indices of an epoch."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _source(self):
        """The generator of one epoch."""
        if self.generator is not None:
            return self.generator
        seed = int(rushlight.empty((), dtype=rushlight.int64).random_().item())
        return rushlight.Generator().manual_seed(seed)

    def __iter__(self):
        count = len(self.data_source)
        generator = self._source()
        if self.replacement:
            # Blocks of 32, as PyTorch draws them, so that one seed gives the same indices.
            for start in range(0, self.num_samples, 32):
                size = (min(32, self.num_samples - start),)
                drawn = rushlight.randint(
                    high=count, size=size, dtype=rushlight.int64, generator=generator
                )
                yield from drawn.tolist()
            return
        for _ in range(self.num_samples // count):
            yield from rushlight.randperm(count, generator=generator).tolist()
        rest = self.num_samples % count
        yield from rushlight.randperm(count, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order.

    Args:
        indices: the indices.
        generator: source of randomness; the default generator if None.

    Example:
        >>> sorted(torch.utils.data.SubsetRandomSampler([5, 7]))
        [5, 7]
    """

    def __init__(
        self, indices: Sequence[int] | Tensor, generator: _C.Generator | None = None
    ) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in rushlight.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Random indices with given weights, which need not sum to one.

    Args:
        weights: how likely each index is, relative to the others.
        num_samples: how many indices to draw.
        replacement: whether an index may come twice.
        generator: source of randomness; the default generator if None.

    Example:
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], num_samples=3))
        [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: _C.Generator | None = None,
    ) -> None:
        self.num_samples = _positive("num_samples", num_samples)
        self.replacement = _flag("replacement", replacement)
        self.generator = generator
        self.weights = rushlight.as_tensor(weights, dtype=rushlight.double)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence, a weight for each index, but got "
                f"{tuple(self.weights.shape)}"
            )

    def __iter__(self):
        drawn = rushlight.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` indices from another sampler.

    Args:
        sampler: an iterable of indices.
        batch_size: length of the lists.
        drop_last: leave out a last list that is shorter.

    Example:
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = _positive("batch_size", batch_size)
        self.drop_last = _flag("drop_last", drop_last)

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else math.ceil(count / self.batch_size)
