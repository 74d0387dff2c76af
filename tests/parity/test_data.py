"""Datasets, samplers, collation and the loader against PyTorch's, random numbers included."""

import random
import re
from collections import OrderedDict, UserList, defaultdict, namedtuple  # noqa: F401

import numpy as np
import pytest

import rushlight
from tests.parity.compare import assert_outcomes_alike, outcome

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


class Drawn:
    """Samples that show what a worker draws and knows."""

    def __init__(self, m, n=6):
        self.m, self.n = m, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        info = self.m.utils.data.get_worker_info()
        about = [None] if info is None else [info.id, info.num_workers, info.seed]
        about += [self.m.initial_seed() if info else 0, self.m.get_num_threads() if info else 0]
        return about + [self.m.rand(1).item(), random.random(), np.random.rand(), i]


class Fails:
    """Samples of which one cannot be made."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 3:
            raise self.error
        return i


class Odd(Exception):
    """An error that cannot be made of a message."""

    def __init__(self, a, b):
        super().__init__(a, b)


def split_stream(m, sizes, length=None):
    """A stream of which worker i gives sizes[i] samples."""

    class Stream(m.utils.data.IterableDataset):
        def __iter__(self):
            info = m.utils.data.get_worker_info()
            number = 0 if info is None else info.id
            return iter(range(10 * number, 10 * number + sizes[number]))

    if length is not None:
        Stream.__len__ = lambda self: length
    return Stream()


def epochs(m, n, *args, **options):
    """The batches of several epochs, and a random number behind them."""
    loader = m.utils.data.DataLoader(*args, **options)
    return [list(loader) for _ in range(n)] + [m.rand(1).item()]


def first_line(call):
    """The first line of the error in a worker."""
    try:
        return call()
    except Exception as error:
        # Ours say which sample it was, and what to do, too.
        lines = [x for x in str(error).split("\n") if not re.match("(at|while) samples? ", x)]
        return [type(error).__name__, lines[0], [x.split(": torch.cat")[0] for x in lines[-2:]]]


def read_on(loader):
    """What comes of a loader, the errors among the batches."""
    result, iterator = [], iter(loader)
    while True:
        try:
            result.append(next(iterator))
        except StopIteration:
            return result
        except Exception as error:
            result.append(type(error).__name__)


def no_start(worker_id):
    raise OSError("no disk")


# With worker processes.
_WORKER_LINES = """
epochs(m, 2, table(m), 3, shuffle=True, num_workers=2)
epochs(m, 2, table(m), 3, shuffle=True, num_workers=2, generator=m.Generator().manual_seed(3))
epochs(m, 3, table(m), 3, shuffle=True, num_workers=1, persistent_workers=True)
epochs(m, 2, Drawn(m), 2, num_workers=2)
epochs(m, 2, Drawn(m), 2, num_workers=2, persistent_workers=True)
epochs(m, 2, Drawn(m), 2, num_workers=2, prefetch_factor=1, shuffle=True)
epochs(m, 1, Drawn(m), None, num_workers=2)
epochs(m, 1, Drawn(m, 3), None, num_workers=2, generator=m.Generator().manual_seed(5))
epochs(m, 1, split_stream(m, [5, 5]), 2, num_workers=2)
epochs(m, 2, split_stream(m, [2, 7]), 2, num_workers=2)
epochs(m, 2, split_stream(m, [2, 7]), 2, num_workers=2, persistent_workers=True)
epochs(m, 1, split_stream(m, [3, 5]), 2, num_workers=2, drop_last=True)
epochs(m, 1, split_stream(m, [0, 3]), None, num_workers=2)
[len(x) for x in [D.DataLoader(split_stream(m, [3, 5], 4), num_workers=2)]]
[[len(x), list(x)] for x in [D.DataLoader(split_stream(m, [3, 5], 4), num_workers=2)]]
sorted(b.tolist() for b in D.DataLoader(range(9), 2, num_workers=2, in_order=False))
epochs(m, 1, [(i, "a" * i, {"k": np.ones(i)}) for i in range(6)], None, num_workers=2)
epochs(m, 1, [np.full((3, 2), i) for i in range(6)], 2, num_workers=2)
epochs(m, 1, range(7), 2, num_workers=2, collate_fn=tuple)
epochs(m, 1, table(m), batch_sampler=[[3, 1], [0]], num_workers=2)
epochs(m, 1, D.Subset(table(m), [3, 1, 9]), 2, num_workers=2)
epochs(m, 1, table(m), 3, num_workers=2, worker_init_fn=m.manual_seed)
[first_line(lambda: list(D.DataLoader(Fails(KeyError("broken")), 2, num_workers=2)))]
[first_line(lambda: list(D.DataLoader(Fails(ValueError("broken")), 2, num_workers=2)))]
[first_line(lambda: list(D.DataLoader(Fails(Odd(1, 2)), 2, num_workers=2)))]
[first_line(lambda: list(D.DataLoader(Fails(StopIteration()), 2, num_workers=1)))]
[first_line(lambda: list(D.DataLoader(table(m), num_workers=2, worker_init_fn=no_start)))]
[first_line(lambda: list(D.DataLoader([m.ones(2), m.ones(3)], 2, num_workers=1)))]
read_on(D.DataLoader(Fails(ValueError()), 1, num_workers=2))
D.DataLoader(table(m), multiprocessing_context="fork")
D.DataLoader(table(m), num_workers=1, multiprocessing_context="x")
D.DataLoader(table(m), num_workers=1, multiprocessing_context=3)
D.DataLoader(table(m), num_workers=1, prefetch_factor=-1)
iter(D.DataLoader(table(m), timeout=3))
[type(D.DataLoader(table(m), num_workers=90)).__name__]
[[w.num_workers, w.prefetch_factor, w.timeout] for w in [D.DataLoader([1], num_workers=1)]]
setattr(D._utils.worker.WorkerInfo(0, 2, 3, None), "id", 3)
repr(D._utils.worker.WorkerInfo(0, 2, 3, None))
D.get_worker_info()
D._utils.collate.collate([m.ones(2)] * 2, collate_fn_map={m.Tensor: lambda b, **k: len(b)})
D._utils.fetch._MapDatasetFetcher([5, 6], True, list, False).fetch([1, 0])
D._utils.fetch._IterableDatasetFetcher(range(3), True, list, False).fetch([None] * 5)
[str(m._utils.KeyErrorMessage("a")), repr(m._utils.KeyErrorMessage("a"))]
"""


def wrapped(m, items):
    return m.utils.data.datapipes.iter.IterableWrapper(items)


def indexed(m, items):
    return m.utils.data.datapipes.map.SequenceWrapper(items)


def odd(x):
    return x % 2


def is_odd(x):
    return x % 2 == 1


def add(a, b):
    return a + b


_PIPE_LINES = """
[list(wrapped(m, range(9)).shuffle()), list(wrapped(m, range(9)).shuffle(buffer_size=3))]
list(wrapped(m, range(9)).shuffle().set_seed(3)) + list(m.rand(1))
[list(p) for p in [wrapped(m, range(5)).shuffle().batch(2)] * 2]
[list(wrapped(m, range(5)).batch(2)), list(wrapped(m, range(5)).batch(2, drop_last=True))]
[len(wrapped(m, range(5)).batch(2)), len(wrapped(m, range(5)).batch(2, drop_last=True))]
list(wrapped(m, [[1, 2], [3]]).unbatch())
list(wrapped(m, [[[1], 2], [3]]).unbatch(-1))
list(wrapped(m, range(7)).groupby(odd, group_size=2))
list(wrapped(m, range(7)).groupby(odd, keep_key=True))
list(wrapped(m, range(7)).groupby(odd, buffer_size=3, group_size=3, guaranteed_group_size=2))
list(wrapped(m, range(7)).filter(is_odd))
list(wrapped(m, [(1, 2), (3, 4)]).filter(is_odd, input_col=0))
list(wrapped(m, [(1, 2), (3, 4)]).map(odd, input_col=0))
list(wrapped(m, [(1, 2), (3, 4)]).map(add, input_col=[0, 1]))
list(wrapped(m, [(1, 2), (3, 4)]).map(add, input_col=[0, 1], output_col=-1))
list(wrapped(m, [{"a": 1, "b": 2}]).map(add, input_col=["a", "b"], output_col="c"))
list(wrapped(m, range(4)).batch(2).collate())
list(wrapped(m, range(3)).concat(wrapped(m, range(2))))
list(wrapped(m, range(3)).zip(wrapped(m, range(2))))
list(wrapped(m, range(3)).mux(wrapped(m, range(10, 12))))
[list(p) for p in wrapped(m, range(4)).fork(2)]
[list(p) for p in wrapped(m, range(4)).demux(2, odd)]
[list(p)[0] for p in wrapped(m, range(3000)).demux(2, is_odd, buffer_size=-1)]
list(wrapped(m, range(4)).fork(0))
len(wrapped(m, iter([1])))
[len(wrapped(m, range(3)).zip(wrapped(m, range(2)))), repr(wrapped(m, [1]))]
[indexed(m, [5, 6, 7])[1], len(indexed(m, [5, 6, 7])), list(indexed(m, [5, 6, 7]).shuffle())]
[indexed(m, [5, 6, 7]).batch(2)[1], indexed(m, [5, 6, 7]).map(odd)[0]]
indexed(m, [5, 6, 7]).batch(2)[2]
[indexed(m, [5]).concat(indexed(m, [6]))[1], indexed(m, [5]).zip(indexed(m, [6]))[0]]
epochs(m, 2, wrapped(m, range(6)).shuffle(), None)
epochs(m, 2, wrapped(m, range(6)).shuffle(), 2, shuffle=True)
epochs(m, 2, wrapped(m, range(6)).shuffle(), 2, shuffle=False)
epochs(m, 2, wrapped(m, range(7)).shuffle().sharding_filter(), 2, num_workers=2)
epochs(m, 2, wrapped(m, range(7)).sharding_filter().map(odd), None, num_workers=2)
epochs(m, 1, wrapped(m, range(7)), None, num_workers=2)
len(D.graph.traverse_dps(wrapped(m, range(7)).shuffle().batch(2)))
[[type(p).__name__, len(below)] for p, below in D.graph.traverse_dps(wrapped(m, "ab").batch(2)).values()]
list(D.graph_settings.apply_sharding(wrapped(m, range(7)).sharding_filter().batch(2), 2, 1))
[len(D.graph_settings.get_all_graph_pipes(D.graph.traverse_dps(wrapped(m, "ab").batch(2))))]
"""


@pytest.mark.parametrize(
    "line", [line for line in (_LINES + _WORKER_LINES + _PIPE_LINES).split("\n") if line]
)
def test_behaviour(line):
    def run(m):
        return eval(line, {**globals(), "m": m, "D": m.utils.data})

    assert_outcomes_alike(outcome(run, rushlight), outcome(run, torch))
