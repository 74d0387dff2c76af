"""Datasets, samplers, collation and the loader."""

import copy
import itertools
import pickle
from collections import namedtuple

import pytest

import rushlight as torch
from rushlight.utils import data

Point = namedtuple("Point", "x y")


def table(n=10):
    return data.TensorDataset(torch.arange(n).to(torch.float32).reshape(n, 1), torch.arange(n))


def rows(loader):
    return [batch[1].tolist() for batch in loader]


def test_batches():
    loader = data.DataLoader(table(), batch_size=4)
    batches = list(loader)
    assert len(loader) == 3 and [type(batch) for batch in batches] == [list] * 3
    assert [tuple(x.shape) for x, _ in batches] == [(4, 1), (4, 1), (2, 1)]
    assert batches[0][0].dtype is torch.float32
    assert rows(data.DataLoader(table(), 4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [y.item() for _, y in data.DataLoader(table(3), batch_size=None)] == [0, 1, 2]


def test_shuffling_gives_pytorchs_order():
    torch.manual_seed(0)
    loader = data.DataLoader(table(), batch_size=5, shuffle=True)
    assert rows(loader) == [[6, 7, 1, 4, 2], [0, 9, 8, 3, 5]]
    torch.manual_seed(0)
    first = rows(loader)
    torch.manual_seed(0)
    assert rows(loader) == first != rows(loader)


def test_batches_own_their_memory():
    dataset = table(4)
    (batch,) = data.DataLoader(dataset, batch_size=4)
    batch[0].zero_()
    assert dataset.tensors[0].sum().item() == 6


def test_gathered_batches_equal_stacked_ones():
    """The short cut for tensors gives what collating the samples gives."""
    dataset = table()
    for chosen in (dataset, data.Subset(dataset, [7, 0, 3])):
        fast = list(data.DataLoader(chosen, 2))
        slow = list(data.DataLoader(chosen, 2, collate_fn=lambda s: data.default_collate(s)))
        for a, b in zip(fast, slow, strict=True):
            assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_samplers():
    torch.manual_seed(0)
    assert list(data.SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(data.RandomSampler(range(5))) == [0, 1, 2, 3, 4]
    assert len(list(data.RandomSampler(range(3), replacement=True, num_samples=50))) == 50
    assert sorted(data.SubsetRandomSampler([4, 8])) == [4, 8]
    batches = data.BatchSampler(range(5), 2, drop_last=False)
    assert list(batches) == [[0, 1], [2, 3], [4]] and len(batches) == 3
    assert rows(data.DataLoader(table(), batch_sampler=[[3, 1], [0]])) == [[3, 1], [0]]
    assert list(data.DistributedSampler(range(5), 2, 1, shuffle=False)) == [1, 3, 0]
    assert list(data.DistributedSampler(range(2), 5, 4, shuffle=False)) == [0]  # once round twice
    assert list(data.DistributedSampler([], 2, 1)) == []


@pytest.mark.parametrize(
    "samples, dtype, values",
    [
        ([1, 2], "int64", [1, 2]),
        ([1.5, 2], "float64", [1.5, 2.0]),
        ([True, False], "bool", [True, False]),
    ],
)
def test_numbers(samples, dtype, values):
    batch = data.default_collate(samples)
    assert batch.dtype is getattr(torch, dtype) and batch.tolist() == values


def test_structures():
    numbers, words = data.default_collate([(1, "a"), (2, "b")])
    assert numbers.tolist() == [1, 2] and words == ("a", "b")
    batch = data.default_collate([{"x": torch.ones(2)}, {"x": torch.zeros(2)}])
    assert batch["x"].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    point = data.default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert type(point) is Point and point.x.tolist() == [1, 3]
    with pytest.raises(TypeError, match="found <class 'NoneType'>"):
        data.default_collate([None])
    with pytest.raises(RuntimeError, match="should be of equal size"):
        data.default_collate([[1, 2], [3]])


def test_streams():
    class Count(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [b.tolist() for b in data.DataLoader(Count(), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in data.DataLoader(Count(), 2, drop_last=True)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        data.DataLoader(Count(), shuffle=True)
    with pytest.raises(TypeError, match="has no len"):
        len(data.DataLoader(Count()))


def test_combined_datasets():
    both = table(2) + table(3)
    assert len(both) == 5 and both[3][1].item() == 1 and both[-1][1].item() == 2
    stacked = data.StackDataset(a=table(2), b=table(2))
    assert set(stacked[1]) == {"a", "b"}
    parts = data.random_split(range(10), [0.75, 0.25])
    assert [len(part) for part in parts] == [8, 2]
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match=r"must not be negative: \[-1, 11\]"):
        data.random_split(range(10), [-1, 11])


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"sampler": [1], "shuffle": True}, ValueError, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, ValueError, "mutually exclusive"),
        ({"batch_size": 0}, ValueError, "should be a positive integer"),
        ({"num_workers": -1}, ValueError, "non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified"),
        ({"persistent_workers": True}, ValueError, "needs num_workers > 0"),
        ({"num_threads": -1}, ValueError, "num_threads must not be negative"),
        ({"num_threads": 1, "num_workers": 1}, ValueError, "mutually exclusive"),
        ({"num_threads": 1, "seed_samples": True}, ValueError, "seed_samples is for processes"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
    ],
)
def test_errors(options, error, message):
    with pytest.raises(error, match=message):
        data.DataLoader(table(), **options)


def test_errors_of_the_dataset_reach_the_caller():
    class Broken(data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            raise KeyError("broken item")

    with pytest.raises(KeyError, match="broken item"):
        list(data.DataLoader(Broken()))
    with pytest.raises(IndexError):
        list(data.DataLoader(table(), batch_sampler=[[10]]))


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_take_loaders_of_others(workers):
    from rushlight.utils.data import dataloader

    class Loader:
        """PyTorch's attributes of a loader, and no others."""

        _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
        _index_sampler, generator, prefetch_factor = itertools.repeat(None), None, 2
        dataset_kind = _dataset_kind = dataloader._DatasetKind.Iterable
        pin_memory, timeout, persistent_workers, worker_init_fn = False, 0, False, None
        multiprocessing_context, num_workers = None, workers

        @property
        def dataset(self):
            return self

        def collate_fn(self, x):
            return x

        def __iter__(self):
            return iter([torch.ones(2), torch.zeros(2)])

    kinds = dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter
    got = [x.tolist() for x in kinds[workers > 0](Loader())]
    assert got == [[1, 1], [0, 0]] if not workers else sorted(got) == [[0, 0]] * 2 + [[1, 1]] * 2


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_are_not_copied(workers):
    """A copy would share the workers, or the place in what is read."""
    iterator = iter(data.DataLoader(range(3), num_workers=workers))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotImplementedError, match="cannot be pickled"):
            copied(iterator)
    assert [int(x) for x in iterator] == [0, 1, 2]
