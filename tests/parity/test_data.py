"""Datasets, samplers, collation and the loader against PyTorch's, random numbers included."""

from collections import namedtuple

import pytest

import rushlight
from tests.parity.compare import assert_alike, outcome

torch = pytest.importorskip("torch")

Point = namedtuple("Point", "x y")


class Listed(list):
    """A list of its own type."""


def table(m, n=10):
    return m.utils.data.TensorDataset(m.arange(n).float().view(n, 1), m.arange(n))


def stream(m, n=7, length=None):
    class Stream(m.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(n))

    if length is not None:
        Stream.__len__ = lambda self: length
    return Stream()


_LINES = """
list(D.DataLoader(table(m), 3, shuffle=True)) + list(m.rand(2))
[list(x) for x in [D.DataLoader(table(m), 3, True, drop_last=True)] * 2]
list(D.DataLoader(table(m), 4))
list(D.DataLoader(table(m), None))
list(D.DataLoader(D.Subset(table(m), [3, 1, 9]), 2))
list(D.DataLoader(D.Subset(D.Subset(table(m), [3, 1, 9]), [0, 2]), 2))
list(D.DataLoader(range(5), 2, shuffle=True, generator=m.Generator().manual_seed(3)))
list(D.DataLoader(list("abc"), 2))
list(D.DataLoader(table(m), 2, sampler=D.RandomSampler(table(m), True, 37)))
list(D.DataLoader(table(m), 2, sampler=D.RandomSampler(table(m), num_samples=23)))
list(D.DataLoader(table(m), 2, sampler=D.SubsetRandomSampler([1, 5, 7])))
list(D.DataLoader(table(m), batch_sampler=[[3, 1], [0, 2, 4]]))
list(D.DataLoader(table(m), batch_sampler=[(3, 1), [0, 2]]))
list(D.DataLoader(stream(m), 3))
list(D.DataLoader(stream(m), 3, drop_last=True))
list(D.DataLoader(stream(m), None))
list(D.DataLoader(stream(m, 7, 3), 2))
[len(x) for x in [D.DataLoader(stream(m, 7, 3), 2)]]
len(D.DataLoader(stream(m)))
D.DataLoader(stream(m), shuffle=True)
D.DataLoader(stream(m), sampler=[1])
D.DataLoader(table(m), sampler=[1], shuffle=True)
D.DataLoader(table(m), 2, batch_sampler=[[1]])
D.DataLoader(table(m), None, drop_last=True)
D.DataLoader(table(m), 0)
D.DataLoader(table(m), drop_last=3)
D.DataLoader(table(m), num_workers=-1)
D.DataLoader(table(m), timeout=-1)
D.DataLoader(table(m), persistent_workers=True)
setattr(D.DataLoader(table(m)), "batch_size", 3)
D.DataLoader([], 2, shuffle=True)
list(D.DataLoader(table(m), 3, collate_fn=len))
[len(D.DataLoader(table(m), 3)), len(D.DataLoader(table(m), 3, drop_last=True))]
D.default_collate([1, 2])
D.default_collate([True, False])
D.default_collate([1.5, 2])
D.default_collate([np.float32(1), np.float32(2)])
D.default_collate([np.array([1, 2]), np.array([3, 4])])
D.default_collate([np.array("a")])
D.default_collate([np.bool_(True), np.bool_(False)])
D.default_collate([m.ones(2), m.zeros(2)])
D.default_collate([(1, {"a": 1.0}), (2, {"a": 2.0})])
D.default_collate([Point(1, "a"), Point(2, "b")])
D.default_collate(["a", "b"])
D.default_collate([("a", 1), ("b", 2)])
D.default_collate([None, None])
D.default_collate([[1, 2], [3]])
D.default_collate([Listed([1, 2]), Listed([3, 4])])
D.default_collate([OrderedDict(a=1), OrderedDict(a=2)])
D.default_collate([defaultdict(int, a=1), defaultdict(int, a=2)])
list(D.default_collate([UserList([1, 2]), UserList([3, 4])]))
D.default_collate([{1, 2}])
D.default_collate([1 + 2j])
D.default_collate([])
D.default_collate([range(3), range(3)])
D.default_convert([np.ones(2), "a", {"k": np.int32(3)}, Point(np.ones(1), 2), (1, np.ones(1))])
D.TensorDataset(m.ones(2), m.ones(3))
D.TensorDataset(a=m.ones(2))
D.Dataset()[0]
len(D.Dataset())
D.ConcatDataset([])
D.ConcatDataset([stream(m)])
[len(table(m) + table(m, 3)), (table(m) + table(m, 3))[11], (table(m) + table(m, 3))[-1]]
(table(m) + table(m, 3))[-20]
list(stream(m) + stream(m, 3))
D.StackDataset()
D.StackDataset(table(m, 2), table(m, 3))
D.StackDataset(a=table(m, 2), b=table(m, 2))[1]
list(D.DataLoader(D.StackDataset(a=table(m, 4), b=table(m, 4)), 3))
D.Subset(table(m), [4, 5])[[0, 1]]
[list(s.indices) for s in D.random_split(table(m), [7, 3])]
[list(s.indices) for s in D.random_split(table(m), [0.5, 0.3, 0.2])]
D.random_split(table(m), [7, 2])
D.random_split(table(m), [1.5, -0.5])
[len(s) for s in D.random_split(range(2), [0.5, 0.3, 0.2])]
D.RandomSampler(table(m), "a")
D.RandomSampler([])
D.BatchSampler([1], 0, False)
D.BatchSampler([1], 2, 1)
list(D.BatchSampler(D.SequentialSampler(range(5)), 2, True))
[list(D.DistributedSampler(range(10), 3, rank)) for rank in range(3)]
list(D.DistributedSampler(range(10), 3, 2, shuffle=False, drop_last=True))
D.DistributedSampler(range(10), 3, 3)
"""


@pytest.mark.parametrize("line", [line for line in _LINES.split("\n") if line])
def test_behaviour(line):
    def run(m):
        return eval(line, {**globals(), "m": m, "D": m.utils.data})

    assert_alike(outcome(run, rushlight), outcome(run, torch))
