"""Files that are saved again: whoever dies meanwhile leaves the old one or the new one, whole."""

import errno
import os
import random
import resource
import signal
import sys
import time

import pytest

import rushlight as torch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and limits sizes of files")


def state(number):
    """Tensors that all say which state they are of."""
    return {
        "weights": [torch.full((3000,), float(number)) for _ in range(4)],
        "step": number,
        "bytes": torch.full((50,), number % 256, dtype=torch.uint8),
    }


def number_of(loaded):
    """Which state this is; AssertionError where it is parts of several."""
    number = loaded["step"]
    assert all((w == number).all() and w.shape == (3000,) for w in loaded["weights"])
    assert (loaded["bytes"] == number % 256).all()
    return number


def killed_while(work, seconds):
    """A process that does `work` and is killed so long after its beginning, if not at its end."""
    began, begin = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(begin, b".")
            work()
        finally:
            os._exit(0)
    os.read(began, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(began)
    os.close(begin)


@pytest.mark.timeout(300)
def test_savers_that_are_killed(tmp_path):
    """A thousand times, at moments from before the first byte to behind the last."""
    path = tmp_path / "state.pt"
    began = time.perf_counter()
    for _ in range(5):
        torch.save(state(0), path)
    once = (time.perf_counter() - began) / 5
    moments = random.Random(0)
    seen = set()
    for round in range(1, 1001):

        def save(round=round):
            for _ in range(3):
                torch.save(state(round), path)

        killed_while(save, moments.random() * 3 * once)
        number = number_of(torch.load(path))
        assert number in (round, max(seen, default=0))
        seen.add(number)
    assert 1 < len(seen) < 1000  # some have come to the end, and not all


def test_no_room_is_left(tmp_path):
    """A write that fails raises OSError, and the old file stays."""
    path = tmp_path / "state.pt"
    torch.save(state(1), path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for room in (0, 1, 100, 4096, 30_000, 47_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
            with pytest.raises((OSError, RuntimeError)):
                torch.save(state(2), path)
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            assert number_of(torch.load(path)) == 1
            assert os.listdir(tmp_path) == ["state.pt"]  # nothing half written lies around
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    torch.save(state(2), path)
    assert number_of(torch.load(path)) == 2


def test_a_full_device():
    with pytest.raises(OSError) as error:
        torch.save(state(1), "/dev/full")
    assert error.value.errno == errno.ENOSPC
