"""Datasets: samples by index (`Dataset`) or as a stream (`IterableDataset`), and combinations."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic

import rushlight
from rushlight import _C, Tensor
from rushlight._raised import add_note
from rushlight._warnings import warn

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

if TYPE_CHECKING:  # `Dataset` alone is one of whatever samples
    from typing_extensions import TypeVar

    _Sample = TypeVar("_Sample", covariant=True, default=Any)
else:
    from typing import TypeVar

    _Sample = TypeVar("_Sample", covariant=True)


class Dataset(Generic[_Sample]):
    """Samples by index: subclasses define `__getitem__`, and `__len__` if the length is known.

    One that can fetch several samples at once may define `__getitems__(indices)`, which returns a
    list of them.

    Example:
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...
        ...     def __getitem__(self, index):
        ...         return index * index
        >>> next(iter(torch.utils.data.DataLoader(Squares(), batch_size=4)))
        tensor([0, 1, 4, 9])
    """

    def __getitem__(self, index: Any) -> _Sample:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])

    def _repr_html_(self) -> str:
        from rushlight._texts import page

        return page.of_dataset(self)


class IterableDataset(Dataset[_Sample]):
    """Samples as a stream: subclasses define `__iter__`.

    Example:
        >>> class Countdown(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> list(torch.utils.data.DataLoader(Countdown(), batch_size=2))
        [tensor([3, 2]), tensor([1])]
    """

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample `i` is the tuple of row `i` of each tensor.

    Args:
        *tensors: tensors whose first dimension has the same size.

    Example:
        >>> torch.utils.data.TensorDataset(torch.tensor([1, 2]), torch.tensor([3, 4]))[1]
        (tensor(2), tensor(4))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            counts = [tensor.size(0) for tensor in tensors]
            raise AssertionError(
                f"Size mismatch between tensors: TensorDataset has a sample for each row, and they "
                f"have {counts} rows"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[_Sample]):
    """Sample `i` is a tuple, or with keywords a dict, of the datasets' samples `i`.

    Args:
        args: the datasets, all of one length.
        kwargs: the datasets by name.

    Example:
        >>> torch.utils.data.StackDataset(x=[1, 2], y=[3, 4])[1]
        {'x': 2, 'y': 4}
    """

    def __init__(self, *args, **kwargs) -> None:
        if args and kwargs:
            raise ValueError("StackDataset: give all datasets names or none; both types are given")
        self.datasets: Any = args or kwargs
        lengths = [len(dataset) for dataset in (*args, *kwargs.values())]
        if not lengths:
            raise ValueError("At least one dataset should be passed")
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: they have {lengths} samples")
        self._length = lengths[0]

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {key: dataset[index] for key, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices):
        if isinstance(self.datasets, dict):
            samples: list[dict] = [{} for _ in indices]
            for key, dataset in self.datasets.items():
                for sample, value in zip(samples, _fetch(dataset, indices), strict=True):
                    sample[key] = value
            return samples
        return list(zip(*(_fetch(dataset, indices) for dataset in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


def samples_at(dataset: Any, indices: Any) -> Any:
    """The samples at several indices, by `__getitems__` where there is one. Data sets of the house
    have `_getitems`, which counts only for their own class: what wraps one and passes its
    attributes on means its own `__getitem__`.
    """
    several: Any = getattr(dataset, "__getitems__", None)
    if callable(several):
        return several(indices)
    several = getattr(type(dataset), "_getitems", None)
    return one_by_one(dataset, indices) if several is None else several(dataset, indices)


def one_by_one(dataset: Any, indices: Any) -> list[Any]:
    """The samples at several indices; an error says at which index it occurred."""
    samples = []
    index = None
    try:
        for index in indices:
            samples.append(dataset[index])  # the index is for the error
    except Exception as error:
        _note_sample(error, dataset, index)
        raise
    return samples


def sample_at(dataset: Any, index: Any) -> Any:
    """The sample at an index; an error says at which index it occurred."""
    try:
        return dataset[index]
    except Exception as error:
        _note_sample(error, dataset, index)
        raise


def _note_sample(error, dataset, index):
    add_note(error, f"at sample {index!r} of {type(dataset).__name__}")


def _fetch(dataset, indices):
    """The same; ValueError if it is another number of them."""
    samples = samples_at(dataset, indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(samples)}"
        )
    return samples


class ConcatDataset(Dataset[_Sample]):
    """Concatenates datasets.

    Args:
        datasets: the datasets, one after the other.

    Example:
        >>> torch.utils.data.ConcatDataset([[1, 2], [3]])[2]
        3
    """

    @staticmethod
    def cumsum(sequence):
        """The cumulative sums of the lengths."""
        return list(itertools.accumulate(len(item) for item in sequence))

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError(
                "datasets should not be an empty iterable: ConcatDataset got none (an iterator is "
                "used up by its first reader)"
            )
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        ends = self.cumulative_sizes
        whole = index + ends[-1] if index < 0 else index
        if whole < 0:
            raise ValueError(
                f"absolute value of index should not exceed dataset length: {index} for {ends[-1]}"
            )
        place = bisect.bisect_right(ends, whole)
        return self.datasets[place][whole - (place and ends[place - 1])]


class ChainDataset(IterableDataset[_Sample]):
    """Concatenates streams of datasets.

    Args:
        datasets: the streams, one after the other.

    Example:
        >>> len(torch.utils.data.ChainDataset([]))
        0
    """

    def __init__(self, datasets: Sequence[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset  # type: ignore

    def __len__(self) -> int:
        total = 0
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            total += len(dataset)  # type: ignore
        return total


class Subset(Dataset[_Sample]):
    """The samples of a dataset at the given indices.

    Args:
        dataset: the dataset.
        indices: which samples.

    Example:
        >>> list(torch.utils.data.Subset([5, 6, 7], [2, 0]))
        [7, 5]
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return samples_at(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[float], generator: _C.Generator | None = None
) -> list[Subset]:
    """Split a dataset randomly into subsets that do not overlap.

    Args:
        dataset: what to split.
        lengths: the parts' lengths, which add up to the dataset's, or fractions that add up to 1.
        generator: source of the permutation; the default generator if None.

    Example:
        >>> first, second = torch.utils.data.random_split(range(10), [0.8, 0.2])
        >>> len(first), len(second)
        (8, 2)
    """
    total, count = sum(lengths), len(dataset)
    sizes: Any = lengths
    if total <= 1 and math.isclose(total, 1):
        sizes = _sizes_of_fractions(lengths, count)
    elif any(length < 0 for length in lengths):
        raise ValueError(f"lengths must not be negative: {list(lengths)}")
    elif total != count:
        raise ValueError(
            f"Sum of input lengths does not equal {count} samples: the lengths are {list(lengths)}"
        )
    order = iter(rushlight.randperm(sum(sizes), generator=generator).tolist())
    return [Subset(dataset, list(itertools.islice(order, size))) for size in sizes]


def _sizes_of_fractions(fractions: Sequence[float], count: int) -> list[int]:
    """How many of `count` each part has: rounded down; the first parts share what is left."""
    wrong = [i for i, fraction in enumerate(fractions) if not 0 <= fraction <= 1]
    if wrong:
        raise ValueError(
            f"Fraction at index {wrong[0]} is not between 0 and 1: {fractions[wrong[0]]}"
        )
    sizes = [int(count * fraction) for fraction in fractions]
    each, more = divmod(count - sum(sizes), len(sizes))
    sizes = [size + each + (i < more) for i, size in enumerate(sizes)]
    for i, size in enumerate(sizes):
        if not size:
            warn(f"Length of split at index {i} is 0: {count} samples are too few for it")
    return sizes
