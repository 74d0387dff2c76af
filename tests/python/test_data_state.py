"""What PyTorch's loader does not do: go on in the middle of an epoch, seed samples, use threads."""

import contextlib
import gc
import io
import multiprocessing
import os
import random
import signal
import threading
import time

import pytest

import rushlight as torch
from rushlight.utils import data

pytestmark = pytest.mark.usefixtures("own_garbage_alone")

numpy = pytest.importorskip("numpy")


class Noise(data.Dataset):
    """Samples with everything that can be drawn."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return [i, torch.rand(()).item(), random.random(), numpy.random.rand()]


class NoisyStream(data.IterableDataset):
    """A stream split unevenly among the workers, with noise."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        number, count = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(self.n):
            if i % 3 % count == number:
                yield [i, torch.rand(()).item(), random.random()]


class Quiet(data.IterableDataset):
    """A stream that draws nothing."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(torch.arange(self.n))


class Accounted(data.IterableDataset):
    """A stream that keeps its place; it counts what it has read."""

    def __init__(self, n):
        self.n, self.place, self.read = n, 0, 0

    def __iter__(self):
        while self.place < self.n:
            self.place += 1
            self.read += 1
            yield [self.place, self.read]
        self.place = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


def plain(batches):
    return [[x.tolist() for x in b] if type(b) is list else int_or_list(b) for b in batches]


def int_or_list(batch):
    """A sample or a tensor as plain data."""
    return batch if isinstance(batch, int) else batch.tolist()


def interrupted(make, steps):
    """The whole epoch, and one of two loaders of which the second goes on from a file."""
    torch.manual_seed(1)
    whole = plain(make())
    torch.manual_seed(1)
    iterator = iter(loader := make())
    first = plain(next(iterator) for _ in range(steps))
    file = io.BytesIO()
    torch.save(loader.state_dict(), file)
    rest = plain(iterator)
    file.seek(0)
    torch.manual_seed(2)
    resumed = make()
    resumed.load_state_dict(torch.load(file))
    before = torch.get_rng_state()
    again = plain(resumed)
    assert torch.equal(torch.get_rng_state(), before)
    assert first + rest == whole
    return rest, again, resumed


@pytest.mark.parametrize(
    "steps, workers, method",
    [(steps, workers, "fork") for steps in (0, 1, 4, 7) for workers in (1, 2, 3)]
    + [(4, 2, "spawn")],
)
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_going_on(steps, workers, method):
    options = {"shuffle": True, "num_workers": workers, "multiprocessing_context": method}
    rest, again, resumed = interrupted(lambda: data.DataLoader(Noise(16), 2, **options), steps)
    assert again == rest and len(again) == 8 - steps
    assert len(plain(resumed)) == 8  # the next epoch is whole


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_streams_go_on(steps):
    make = lambda: data.DataLoader(NoisyStream(14), 2, num_workers=2)
    rest, again, _ = interrupted(make, steps)
    assert again == rest


def test_a_stream_with_an_account_is_not_read_again():
    make = lambda: data.DataLoader(Accounted(20), 2, num_workers=2)
    rest, again, _ = interrupted(make, 5)
    assert [batch[0] for batch in again] == [batch[0] for batch in rest]
    assert again[0][1][0] < rest[0][1][0]  # fewer samples were read


@pytest.mark.parametrize(
    "make",
    [
        lambda: data.DataLoader(range(20), 3, shuffle=True),
        lambda: data.DataLoader(range(20), 3, shuffle=True, num_threads=2),
        lambda: data.DataLoader(range(20), 3, generator=torch.Generator().manual_seed(5)),
        lambda: data.DataLoader(
            range(20), 3, shuffle=True, generator=torch.Generator().manual_seed(5), num_workers=2
        ),
        lambda: data.DataLoader(range(20), 3, sampler=data.SubsetRandomSampler(range(20))),
        lambda: data.DataLoader(range(9), 2, sampler=data.RandomSampler(range(9), True, 50)),
        lambda: data.DataLoader(range(9), None, sampler=data.WeightedRandomSampler([1] * 9, 20)),
        lambda: data.DataLoader(Quiet(9), 2),
        lambda: data.DataLoader(Quiet(9), None),
        lambda: data.DataLoader(Noise(12), 2, True, seed_samples=True),
        lambda: data.DataLoader(Noise(12), 2, True, seed_samples=True, num_workers=2),
        lambda: data.DataLoader(Noise(12), 2, True, num_workers=2, persistent_workers=True),
    ],
)
def test_orders_go_on(make):
    rest, again, _ = interrupted(make, 3)
    assert again == rest and again


def test_a_custom_sampler_goes_on():
    class Shuffled(data.Sampler):
        def __len__(self):
            return 12

        def __iter__(self):
            return iter(random.sample(range(12), 12))

    def make():
        random.seed(3)
        return data.DataLoader(range(12), 2, sampler=Shuffled(), num_workers=1)

    rest, again, _ = interrupted(make, 2)
    assert again == rest


def test_between_epochs():
    """The generator goes on; nothing is passed over."""

    def make():
        return data.DataLoader(range(9), 2, True, generator=torch.Generator().manual_seed(5))

    loader = make()
    list(loader)
    state = loader.state_dict()
    second = plain([list(loader)])
    resumed = make()
    resumed.load_state_dict(state)
    assert plain([list(resumed)]) == second


def test_persistent_workers_go_back():
    loader = data.DataLoader(Noise(12), 2, True, num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = plain(iterator)
    loader.load_state_dict(state)
    assert plain(loader) == rest


def test_what_cannot_go_on():
    with pytest.raises(ValueError, match="stream in 0 workers, and this DataLoader has 2"):
        loader = data.DataLoader(NoisyStream(9))
        iterator = iter(loader)
        next(iterator)
        other = data.DataLoader(NoisyStream(9), num_workers=2)
        other.load_state_dict(loader.state_dict())


KINDS = {
    "alone": lambda: data.DataLoader(range(20), 2, True, generator=seeded()),
    "stream": lambda: data.DataLoader(Quiet(20), 2),
    "threads": lambda: data.DataLoader(range(20), 2, True, generator=seeded(), num_threads=2),
    "workers": lambda: data.DataLoader(Noise(20), 2, True, generator=seeded(), num_workers=2),
    "persistent": lambda: data.DataLoader(
        Noise(20), 2, True, generator=seeded(), num_workers=2, persistent_workers=True
    ),
    "streams": lambda: data.DataLoader(NoisyStream(20), 2, generator=seeded(), num_workers=2),
    "accounts": lambda: data.DataLoader(Accounted(20), 2, generator=seeded(), num_workers=2),
    "spawned": lambda: data.DataLoader(
        Noise(20), 2, True, generator=seeded(), num_workers=1, multiprocessing_context="spawn"
    ),
}


def seeded():
    return torch.Generator().manual_seed(5)


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


@pytest.fixture
def interrupts():
    """Ctrl-C raises, whatever this process was started with."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_all():
    """Ctrl-C, for the workers too."""
    for process in multiprocessing.active_children():
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(process.pid, signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


def leave(loader, steps, how):
    """Leave a loop over a loader after some batches, which are returned."""
    seen = []
    try:
        for batch in loader:
            seen.append(batch)
            if len(seen) == steps and how == "break":
                break
            if len(seen) == steps and how == "exception":
                raise FloatingPointError
            if len(seen) == steps:
                interrupt_all()
                time.sleep(5)
    except (FloatingPointError, KeyboardInterrupt):
        pass
    return plain(seen)


@pytest.mark.parametrize("how", ["break", "exception", "interrupt"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_that_was_left_goes_on(kind, how, interrupts):
    make = KINDS[kind]
    whole = make()
    epochs = [plain(whole), plain(whole)]
    indices = lambda batches: [batch[0] for batch in batches]
    loader = make()
    first = leave(loader, 3, how)
    gc.collect()
    assert first == epochs[0][:3]
    for process in multiprocessing.active_children():
        process.kill()  # nothing is asked of them any more
        process.join()
    state = through_a_file(loader.state_dict())
    resumed = make()
    resumed.load_state_dict(state)
    rest, second = plain(resumed), plain(resumed)
    if kind == "accounts":  # its second column counts what is read again
        rest, epochs = indices(rest), [indices(epoch) for epoch in epochs]
        second = indices(second)
    assert rest == epochs[0][3:] and second == epochs[1]
    fresh = plain(loader)  # the loader that was left begins its next epoch
    assert len(fresh) == len(epochs[1])


def test_the_state_of_a_later_epoch_of_persistent_workers():
    """Also before its first batch, where each worker goes on with what it has drawn."""
    for steps in (0, 1, 4):
        loader = KINDS["persistent"]()
        list(loader)
        iterator = iter(loader)
        first = plain(next(iterator) for _ in range(steps))
        state = through_a_file(loader.state_dict())
        rest = plain(iterator)
        resumed = KINDS["persistent"]()
        resumed.load_state_dict(state)
        assert plain(resumed) == rest and len(first + rest) == 10


class Slow(Noise):
    """Samples that take a moment."""

    def __getitem__(self, i):
        time.sleep(0.0005)
        return super().__getitem__(i)


SLOW = {
    "alone": lambda: data.DataLoader(Slow(60), 2, True, generator=seeded(), seed_samples=True),
    "workers": lambda: data.DataLoader(Slow(60), 2, True, generator=seeded(), num_workers=2),
    "persistent": lambda: data.DataLoader(
        Slow(60), 2, True, generator=seeded(), num_workers=2, persistent_workers=True
    ),
    "streams": lambda: data.DataLoader(NoisyStream(300), 2, generator=seeded(), num_workers=2),
}


@pytest.mark.parametrize(
    "rounds", [pytest.param(20, marks=pytest.mark.slow), pytest.param(3, id="few")]
)
@pytest.mark.parametrize("kind", SLOW)
# One that comes while a finalizer runs is lost: Python says so and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_kills_at_random_points(kind, rounds, interrupts):
    """Whenever Ctrl-C comes, what is left of the epoch has the bits that it would have had."""
    make = SLOW[kind]
    whole = plain(make())
    draw = random.Random(f"{kind} {rounds}")
    for _ in range(rounds):
        seen, lost, state, longest = {}, set(), None, 0.02
        while len(seen) + len(lost) < len(whole):
            loader = make()
            if state is not None:
                loader.load_state_dict(state)
            begin = 0 if state is None else state["epoch"]["batches"]
            interrupt(loader, seen, begin, draw.uniform(0, longest))
            longest *= 1.3  # so that a busy machine comes to an end, too
            state = through_a_file(loader.state_dict())
            if state["epoch"] is None:  # before it began, or at its end
                if seen:
                    break
                state = None
                continue
            # Handed out, but not kept by the loop: at most the one at which the interrupt came.
            lost |= set(range(begin, state["epoch"]["batches"])) - set(seen)
        assert len(lost) <= 1 and set(seen) | lost == set(range(len(whole)))
        assert all(plain([batch]) == [whole[i]] for i, batch in seen.items())


def interrupt(loader, seen, begin, seconds):
    """A loop over a loader, which an interrupt ends, of the workers too, unless it ends before."""
    ended = threading.Event()

    def kill():
        if not ended.wait(seconds):
            interrupt_all()

    thread = threading.Thread(target=kill)
    try:
        thread.start()
        try:
            for i, batch in enumerate(loader, begin):
                seen[i] = batch
        finally:
            ended.set()
            thread.join()
            time.sleep(0.03)  # an interrupt that has been sent comes now
    except KeyboardInterrupt:
        thread.join()


def test_persistent_workers_survive_an_interrupted_cell(interrupts):
    loader = KINDS["persistent"]()
    whole = [sorted(i for batch in plain(loader) for i in batch[0])] * 2
    for steps in (1, 9):
        leave(loader, steps, "interrupt")
        pids = [worker.process.pid for worker in loader._iterator._workers]
        assert sorted(i for batch in plain(loader) for i in batch[0]) == whole[0]
        assert pids == [worker.process.pid for worker in loader._iterator._workers]
    for _ in range(5):  # while batches are waited for
        interrupt(loader, {}, 0, 0.003)
        assert sorted(i for batch in plain(loader) for i in batch[0]) == whole[0]


def test_an_iterator_goes_on_after_an_interrupt(interrupts, monkeypatch):
    """Also in the middle of handing out a batch: with new workers, and no batch is lost."""
    expected = plain(KINDS["workers"]())
    loader = KINDS["workers"]()
    iterator = iter(loader)
    seen = [next(iterator)]
    give = type(iterator)._try_put_index

    def interrupted(self, number=None):
        monkeypatch.setattr(type(iterator), "_try_put_index", give)
        raise KeyboardInterrupt

    for _ in range(2):
        monkeypatch.setattr(type(iterator), "_try_put_index", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
        seen.append(next(iterator))
    state = through_a_file(loader.state_dict())
    assert plain([*seen, *iterator]) == expected
    resumed = KINDS["workers"]()
    resumed.load_state_dict(state)
    assert plain(resumed) == expected[3:]


class Failing(Noise):
    """A sample that fails."""

    def __getitem__(self, i):
        if i == 5:
            raise OSError("no such picture")
        return super().__getitem__(i)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_failed_is_tried_again(workers):
    """Unless its iterator went on without it."""
    make = lambda: data.DataLoader(Failing(12), 2, num_workers=workers)
    indices = lambda batches: [batch[0] for batch in plain(batches)]
    loader = make()
    with pytest.raises(OSError, match="no such picture"):
        list(loader)
    resumed = make()
    resumed.load_state_dict(loader.state_dict())
    iterator = iter(resumed)
    with pytest.raises(OSError, match="no such picture"):
        next(iterator)
    assert indices([next(iterator)]) == [[6, 7]]
    again = make()
    again.load_state_dict(resumed.state_dict())
    assert indices(again) == [[8, 9], [10, 11]] == indices(iterator)


@pytest.mark.parametrize("batch_size", [None, 3])
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_seeds_of_samples(batch_size):
    """The same for any number of workers, for other batches, and the program's own are left."""
    results = []
    for options in ({}, {"num_workers": 1}, {"num_workers": 3, "prefetch_factor": 1}):
        torch.manual_seed(4)
        random.seed(4)
        loader = data.DataLoader(Noise(10), batch_size, True, seed_samples=True, **options)
        results.append([_flat(loader), _flat(loader), torch.rand(()).item(), random.random()])
    assert results[0] == results[1] == results[2]
    torch.manual_seed(4)
    assert _flat(data.DataLoader(Noise(10), 2, True, seed_samples=True)) == results[0][0]
    assert results[0][0] != results[0][1]
    drawn = [x for sample in results[0][0] for x in sample[1:]]
    assert len(set(drawn)) == 30


def _flat(loader):
    """The samples one by one."""
    samples = []
    for batch in loader:
        columns = [c.tolist() if isinstance(c, torch.Tensor) else c for c in batch]
        samples += zip(*columns, strict=True) if isinstance(columns[0], list) else [tuple(columns)]
    return samples


def test_seeded_epochs_of_persistent_workers():
    torch.manual_seed(4)
    one = data.DataLoader(Noise(6), 2, seed_samples=True)
    expected = [_flat(one), _flat(one)]
    torch.manual_seed(4)
    options = {"num_workers": 2, "persistent_workers": True}
    two = data.DataLoader(Noise(6), 2, seed_samples=True, **options)
    assert [_flat(two), _flat(two)] == expected


class Waiting(data.Dataset):
    """Samples that take time, in which other threads run."""

    def __init__(self, n):
        self.n = n
        self.threads = set()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.threads.add(threading.get_ident())
        time.sleep(0.02)
        if i == self.n:
            raise IndexError("no such sample")
        return i


def test_threads():
    dataset = Waiting(32)
    loader = data.DataLoader(dataset, 2, num_threads=8)
    start = time.monotonic()
    assert [b.tolist() for b in loader] == [[i, i + 1] for i in range(0, 32, 2)]
    assert time.monotonic() - start < 32 * 0.02
    assert len(dataset.threads) == 8 and threading.get_ident() not in dataset.threads
    assert all(not t.name.startswith("rushlight-data") for t in threading.enumerate())


def test_threads_and_errors():
    loader = data.DataLoader(Waiting(4), batch_sampler=[[1], [4], [2]], num_threads=2)
    iterator = iter(loader)
    assert next(iterator).tolist() == [1]
    with pytest.raises(IndexError, match="no such sample"):
        next(iterator)
    assert next(iterator).tolist() == [2]
    with pytest.raises(StopIteration):
        next(iterator)
    slow = data.DataLoader(Waiting(4), num_threads=1, timeout=0.001)
    with pytest.raises(RuntimeError, match="timed out after 0.001 seconds"):
        next(iter(slow))
    with torch.no_grad():
        grads = data.DataLoader([0], num_threads=1, collate_fn=lambda _: torch.is_grad_enabled())
        assert list(grads) == [False]


def test_own_options_need_indices():
    for option in ({"num_threads": 1}, {"seed_samples": True}):
        with pytest.raises(ValueError, match="needs a dataset with indices"):
            data.DataLoader(NoisyStream(3), **option)


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        (None, TypeError, "a dict, but got NoneType"),
        ([1], TypeError, "a dict, but got list"),
        ({}, ValueError, "has no epoch, generators"),
        ({"epoch": None}, ValueError, "has no generators"),
        ({"epoch": 3, "generators": {}}, TypeError, "'epoch' is a dict, but got int"),
        (
            {"epoch": None, "generators": None},
            TypeError,
            "'generators' is a dict, but got NoneType",
        ),
        ({"epoch": {"batches": 1}, "generators": {}}, ValueError, "has no epoch.base_seed, "),
    ],
)
def test_what_is_no_state_is_refused_at_once(state, error, said):
    loader = data.DataLoader(range(4))
    with pytest.raises(error, match=said) as refusal:
        loader.load_state_dict(state)
    assert "expected what state_dict() of a DataLoader gave" in str(refusal.value)
    assert [int(batch) for batch in loader] == [0, 1, 2, 3]


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_number_of_an_epoch_is_part_of_the_state(wrapped):
    """A sampler whose order depends on it, as that of distributed training."""

    def made():
        sampler = data.distributed.DistributedSampler(range(20), num_replicas=2, rank=0)
        if wrapped:
            batches = data.BatchSampler(sampler, 2, False)
            return sampler, data.DataLoader(range(20), batch_sampler=batches)
        return sampler, data.DataLoader(range(20), 2, sampler=sampler)

    sampler, loader = made()
    sampler.set_epoch(3)
    iterator = iter(loader)
    next(iterator)
    state = through_a_file(loader.state_dict())
    expected = plain([*iterator])
    other, resumed = made()
    resumed.load_state_dict(state)
    assert plain([*resumed]) == expected and other.epoch == 3


def test_a_state_of_other_batches_is_refused():
    loader = data.DataLoader(range(20), 2, shuffle=True)
    next(iter(loader))
    state = loader.state_dict()
    for other in (
        data.DataLoader(range(30), 2, shuffle=True),
        data.DataLoader(range(20), 3, shuffle=True),
        data.DataLoader(range(20), 2, shuffle=True, drop_last=True),
    ):
        with pytest.raises(ValueError, match="samples=20, batch_size=2"):
            other.load_state_dict(state)
    for _ in loader:
        pass
    data.DataLoader(range(30), 3).load_state_dict(loader.state_dict())  # between epochs
    del state["sizes"], state["numbers"]  # of an earlier version
    data.DataLoader(range(20), 2, shuffle=True).load_state_dict(state)
