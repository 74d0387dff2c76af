"""Loaders with worker processes: what they give, how they fail, and that nothing stays behind."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import rushlight as torch
from rushlight.utils import data
from rushlight.utils.data._utils import channel

from .signals import with_own_signals


@pytest.fixture(autouse=True)
def in_time():
    """A test that hangs fails, and leaves no process."""

    def stop(number, frame):
        raise TimeoutError("the test has taken too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    gc.collect()
    for process in multiprocessing.active_children():
        process.join(5)
        assert not process.is_alive()


class Squares(data.Dataset):
    """Sample i is a tensor full of i and what `act` makes of i."""

    def __init__(self, n, size=3, act=None):
        self.n, self.size, self.act = n, size, act

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((self.size,), float(i)), self.act(i) if self.act else i * i


class Count(data.IterableDataset):
    """The numbers below n, split among the workers."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))


def die(i):
    if i == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return i


def leave(i):
    if i == 4:
        os._exit(7)
    return i


def sleep(i):
    if i == 4:
        time.sleep(60)
    return i


def draw(i):
    return [torch.rand(()).item(), random.random()]


def pid(i):
    return os.getpid()


def shared_files():
    """The anonymous files that this process has open."""
    names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return [name for name in names if os.path.exists(name) and "memfd" in os.readlink(name)]


def firsts(loader):
    """The first number of each sample."""
    return [x for batch in loader for x in batch[0][:, 0].tolist()]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_batches_are_those_of_one_process(method):
    dataset = Squares(11)
    loader = data.DataLoader(dataset, 4, num_workers=2, multiprocessing_context=method)
    got = [[part.tolist() for part in batch] for batch in loader]
    assert got == [[part.tolist() for part in batch] for batch in data.DataLoader(dataset, 4)]


@pytest.mark.parametrize("size", [1, 4096, 40_000])
@pytest.mark.parametrize("batch_size", [None, 4])
def test_sizes(size, batch_size):
    """By value, in shared memory, and several times in the same memory."""
    loader = data.DataLoader(Squares(32, size), batch_size, num_workers=2)
    for number, (x, y) in enumerate(loader):
        start = number * (batch_size or 1)
        values = torch.arange(start, start + (batch_size or 1)).to(torch.float32)
        if batch_size is None:
            assert x.shape == (size,) and bool((x == values).all()) and y == start**2
        else:
            assert torch.equal(x, values.reshape(-1, 1).expand(-1, size))
        x.add_(1)  # it is the caller's own


def test_batches_that_are_kept():
    kept = [x for x, _ in data.DataLoader(Squares(120, 20_000), 1, num_workers=2)]
    assert [x[0, -1].item() for x in kept] == list(range(120))
    assert len(shared_files()) < 100
    del kept
    assert shared_files() == []


def test_a_batch_in_a_child():
    """Memory that a child sees is not written again while the parent goes on."""
    loader = data.DataLoader(Squares(40, 20_000), 1, num_workers=1)
    iterator = iter(loader)
    x, _ = next(iterator)
    start, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(start, 1)
        os._exit(0 if bool((x == 0).all()) else 1)
    del x
    for _ in iterator:
        pass
    os.write(end, b"x")
    assert os.waitpid(child, 0)[1] == 0
    os.close(start)
    os.close(end)


def collate_views(samples):
    whole = torch.cat([x for x, _ in samples])
    return whole, whole[1:3], whole.reshape(-1, 1).t(), torch.nn.Parameter(torch.ones(2))


@pytest.mark.parametrize("size", [3, 30_000])
def test_views_stay_views(size):
    (batch,) = data.DataLoader(Squares(2, size), 2, collate_fn=collate_views, num_workers=1)
    whole, part, turned, parameter = batch
    whole[1] = 7.0
    assert part[0].item() == 7.0 and turned[0, 1].item() == 7.0
    assert type(parameter) is torch.nn.Parameter and parameter.requires_grad


class Rows(data.Dataset):
    """Views of one large tensor."""

    def __init__(self, table):
        self.table = table

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        return self.table[i]


@pytest.mark.parametrize("shared", [False, True])
def test_rows_of_a_large_tensor(shared):
    table = torch.arange(400_000).reshape(100, 4000)
    if shared:
        table.share_memory_()
    rows = list(data.DataLoader(Rows(table), None, num_workers=2))
    assert all(torch.equal(a, b) for a, b in zip(rows, table, strict=True))
    assert rows[0].untyped_storage().nbytes() < table.untyped_storage().nbytes() or shared
    del rows, table
    assert shared_files() == []


def test_arrays():
    numpy = pytest.importorskip("numpy")
    samples = [numpy.full((2, size), size % 100, "int16") for size in (3, 50_000, 0)]
    got = list(data.DataLoader(samples, None, num_workers=1, collate_fn=lambda x: x))
    assert all(
        numpy.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(got, samples, strict=True)
    )
    got[0][:] = got[1][:, :3]


def test_memory_is_used_again():
    loader = data.DataLoader(Squares(60, 50_000), 2, num_workers=1, prefetch_factor=2)
    places = {batch[0].data_ptr() for batch in loader}
    assert len(places) <= 6


def test_streams():
    loader = data.DataLoader(Count(11), 2, num_workers=2)
    batches = [batch.tolist() for batch in loader]
    assert batches == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    assert sorted(i for batch in batches for i in batch) == list(range(11))


def test_what_a_worker_knows():
    assert data.get_worker_info() is None

    def about(i):
        info = data.get_worker_info()
        same = isinstance(info.dataset, Squares) and torch.initial_seed() == info.seed
        return [info.id, info.num_workers, same, torch.get_num_threads()]

    loader = data.DataLoader(Squares(4, act=about), None, num_workers=2)
    assert [y for _, y in loader] == [[0, 2, True, 1], [1, 2, True, 1]] * 2


def test_numpy_is_seeded_when_it_comes():
    code = """
import sys
import rushlight as torch
from rushlight.utils import data

class Late(data.Dataset):
    def __len__(self):
        return 1
    def __getitem__(self, i):
        import numpy
        return float(numpy.random.rand())

torch.manual_seed(0)
batch = next(iter(data.DataLoader(Late(), None, num_workers=1)))
assert "numpy" not in sys.modules
print(batch)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.stdout.startswith("0.837164050886"), done.stderr  # PyTorch's worker draws this


def test_persistent_workers():
    loader = data.DataLoader(Squares(6, act=pid), 2, num_workers=2, persistent_workers=True)
    pids = [{p for _, batch in loader for p in batch.tolist()} for _ in range(3)]
    assert pids[0] == pids[1] == pids[2] and len(pids[0]) == 2
    next(iter(loader))  # broken off
    assert firsts(loader) == [0, 1, 2, 3, 4, 5]
    os.kill(pids[0].pop(), signal.SIGKILL)
    time.sleep(0.2)
    assert firsts(loader) == [0, 1, 2, 3, 4, 5]


def test_out_of_order():
    def wait(i):
        time.sleep(0.5 if i == 0 else 0)
        return i

    loader = data.DataLoader(Squares(8, act=wait), 1, num_workers=2, in_order=False)
    order = firsts(loader)
    assert sorted(order) == list(range(8)) and order[0] != 0


@pytest.mark.parametrize("act, how", [(die, "is killed by signal: Killed"), (leave, "code 7")])
def test_a_worker_that_dies_is_reported(act, how):
    start = time.monotonic()
    with pytest.raises(
        RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpec"
    ) as e:
        list(data.DataLoader(Squares(20, act=act), 2, num_workers=2))
    assert how in str(e.value.__cause__)
    assert time.monotonic() - start < 5
    assert shared_files() == []


def test_timeout():
    loader = data.DataLoader(Squares(20, act=sleep), 2, num_workers=1, timeout=0.5)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        list(loader)


def unpicklable(i):
    return lambda: i


def test_what_cannot_be_sent_is_an_error():
    loader = data.DataLoader(Squares(2, act=unpicklable), None, num_workers=1)
    with pytest.raises(Exception, match="in DataLoader worker process 0"):
        list(loader)
    live = [(torch.ones(2, requires_grad=True) * 2, 0)]
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(data.DataLoader(live, None, num_workers=1))


def test_errors_keep_their_type_and_place():
    class Local(Exception):
        pass

    def fail(i):
        raise {0: KeyError("key"), 1: Local("here")}[i]

    iterator = iter(data.DataLoader(Squares(2, act=fail), None, num_workers=1))
    with pytest.raises(KeyError) as error:
        next(iterator)
    assert "Caught KeyError in DataLoader worker process 0.\nOriginal Traceback" in str(error.value)
    assert "raise {0: KeyError" in str(error.value)
    with pytest.raises(RuntimeError, match="Local: here"):
        next(iterator)


def test_worker_init_fn():
    def start(worker_id):
        random.seed(100 + worker_id)

    def drawn(i):
        return random.random()

    loader = data.DataLoader(Squares(2, act=drawn), None, num_workers=2, worker_init_fn=start)
    assert [y for _, y in loader] == [random.Random(100 + i).random() for i in range(2)]


_PROGRAM = """
import os, signal, sys, threading, time
import rushlight as torch
from rushlight.utils import data

class Slow(data.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.full((20_000,), float(i))

if __name__ == "__main__":
    loader = data.DataLoader(Slow(), 2, num_workers=2, persistent_workers=True,
                             multiprocessing_context=sys.argv[1])
    for number, batch in enumerate(loader):
        if number == 2:
            print(*[w.process.pid for w in loader._iterator._workers], flush=True)
"""


@pytest.fixture(params=[False, True], ids=["heard", "ignored"])
def signals(request):
    """The tests may run where signals are ignored, as in a job in the background."""
    numbers = (signal.SIGINT, signal.SIGTERM) if request.param else ()
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_behind(tmp_path, method, number, signals):
    """Of a program that is interrupted or killed; Ctrl-C goes to the workers, too."""
    (tmp_path / "program.py").write_text(_PROGRAM)
    before = set(os.listdir("/dev/shm"))
    program = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), method],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=with_own_signals,
    )
    pids = [int(word) for word in program.stdout.readline().split()]
    assert len(pids) == 2
    if number == signal.SIGINT:
        os.killpg(program.pid, number)
    else:
        program.send_signal(number)
    errors = program.communicate(timeout=15)[1]
    assert errors.count("Traceback") == (1 if number == signal.SIGINT else 0), errors
    end = time.monotonic() + 8
    while any(os.path.exists(f"/proc/{p}") for p in pids) and time.monotonic() < end:
        time.sleep(0.05)
    left = [p for p in pids if os.path.exists(f"/proc/{p}") and "Z" not in _status(p)]
    assert left == [] and set(os.listdir("/dev/shm")) <= before


def _status(number):
    with open(f"/proc/{number}/stat") as file:
        return file.read().rsplit(")", 1)[1]


def test_long_messages():
    """Indices and samples that do not fit into a message."""
    batches = [list(range(30_000)), list(range(30_000, 60_000))]
    loader = data.DataLoader(range(60_000), batch_sampler=batches * 3, num_workers=2)
    assert [[b[0].item(), b[-1].item()] for b in loader] == [[0, 29_999], [30_000, 59_999]] * 3
    words = ["x" * 200_000, "y"]
    assert list(data.DataLoader(words, None, num_workers=1)) == words


def test_many_tensors():
    many = [[torch.full((9000,), float(i)) for i in range(300)]]
    (batch,) = data.DataLoader(many, None, num_workers=1)
    assert [x[5].item() for x in batch] == list(range(300))


def test_pinning_keeps_structure():
    class Pinned:
        def pin_memory(self):
            return "pinned"

    pin = data._utils.pin_memory.pin_memory
    assert pin(["a", 1, {"k": Pinned()}, (2, Pinned())]) == ["a", 1, {"k": "pinned"}, [2, "pinned"]]
    with pytest.warns(UserWarning, match="no accelerator is found"):
        if torch.cuda.is_available():
            pytest.skip("for machines without a GPU")
        next(iter(data.DataLoader(Squares(2), pin_memory=True)))


def test_too_many_workers_are_told():
    with pytest.warns(UserWarning, match="will create 1000 worker processes in total"):
        data.DataLoader(Squares(2), num_workers=1000)


def test_memory_is_used_again_by_the_next_workers():
    loader = data.DataLoader(Squares(12, 50_000), 2, num_workers=2)
    for value in (0.0, 5.0):
        for number, (x, _) in enumerate(loader):
            assert x[:, 0].tolist() == [2.0 * number, 2.0 * number + 1]
            x.fill_(value)
        del x
    files = {os.stat(name).st_ino for name in shared_files()}
    assert 0 < len(files) <= 8
    for batch in loader:
        del batch
    assert {os.stat(name).st_ino for name in shared_files()} & files
    del loader
    assert shared_files() == []


def test_memory_that_a_child_sees_stays_with_it():
    loader = data.DataLoader(Squares(2, 50_000), 1, num_workers=1)
    iterator = iter(loader)
    x, _ = next(iterator)
    child = os.fork()
    if child == 0:
        time.sleep(1)
        os._exit(0 if bool((x == 0).all()) else 1)
    del x
    list(iterator)
    for batch, _ in loader:
        batch.fill_(3)
    assert os.waitpid(child, 0)[1] == 0


def test_memory_is_kept_when_its_batch_goes_after_the_workers():
    ends = channel.pair()
    sender, receiver = channel.Channel(ends[0]), channel.Channel(ends[1])
    for forked in (False, True):
        sender.send(0, torch.rand(1 << 15))
        _, batch = receiver.receive()
        late = []
        spare = receiver.spare_blocks(late.append)
        assert batch.untyped_storage().nbytes() == 1 << 17 and not late
        if forked:  # a child may look at it for longer
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        expected = batch.tolist()
        del batch
        assert len(late) == (0 if forked else 1) and not set(late) & set(spare)
        if not forked:
            memory = torch.frombuffer(late[0].memory, dtype=torch.float32)
            assert memory[: 1 << 15].tolist() == expected
            receiver._borrower._keepers.clear()
    sender.close()
    receiver.close()


def test_what_is_held_is_not_written_again():
    loader = data.DataLoader(data.TensorDataset(torch.rand(64, 4096)), 8, num_workers=2)
    first = sum(x.sum().item() for (x,) in loader)
    (held,) = next(iter(loader))
    before = held.clone()
    for _ in range(3):
        assert sum(x.sum().item() for (x,) in loader) == first
    assert torch.equal(held, before)
