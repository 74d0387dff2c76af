"""Processes are killed at random moments: the others say who, and training goes on as if nothing
had happened.

RUSHLIGHT_FAULT_ROUNDS says how many are killed in each case (one by default), RUSHLIGHT_FAULT_SEED when.
"""

import os
import random
import signal
import socket
import time
from datetime import timedelta

import pytest

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight import distributed as dist

from . import distributed_fault_workers as workers

ROUNDS = int(os.environ.get("RUSHLIGHT_FAULT_ROUNDS", "1"))
SEED = int(os.environ.get("RUSHLIGHT_FAULT_SEED", "0"))
SIZE = 3
WITHIN = 5.0  # seconds, in which the others know

pytestmark = [
    pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo"),
    pytest.mark.timeout(60 + 30 * ROUNDS),
]


def start(folder, attempt, kind, last, where):
    context = torch.multiprocessing.get_context("spawn")
    processes = [
        context.Process(
            target=workers.train,
            args=(rank, SIZE, str(folder), attempt, kind, last, where),
            daemon=True,
        )
        for rank in range(SIZE)
    ]
    for process in processes:
        process.start()
    return processes


def lines(folder):
    path = folder / "log"
    return path.read_text().splitlines() if path.exists() else []


def end(processes, seconds):
    """Wait for processes; kill and name those that hang."""
    deadline = time.monotonic() + seconds
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
    hung = [rank for rank, process in enumerate(processes) if process.is_alive()]
    for rank in hung:
        processes[rank].kill()
        processes[rank].join()
    return hung


def places(folder):
    """Where the attempts of a case meet: at one port, which the next one needs again, or in a file
    of each attempt."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        "ddp": lambda _: f"tcp://127.0.0.1:{port}",
        "fsdp": lambda attempt: f"file://{folder}/store{attempt}",
        "async": lambda _: f"tcp://127.0.0.1:{port}",
    }


@pytest.mark.parametrize("kind", workers.KINDS)
def test_killed_ranks(kind, tmp_path):
    rng = random.Random(f"{SEED} {kind}")
    where = places(tmp_path)[kind]
    last = 12 + 4 * ROUNDS
    (tmp_path / "whole").mkdir()
    folder = tmp_path / "parts"
    folder.mkdir()
    killed = attempt = 0
    while killed < ROUNDS:
        attempt += 1
        assert attempt <= 20 * ROUNDS, f"only {killed} were killed"
        before = len(lines(folder))
        processes = start(folder, attempt, kind, last, where(attempt))
        deadline = time.monotonic() + 60
        while len(lines(folder)) == before and all(process.is_alive() for process in processes):
            assert time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(rng.random() ** 2 * 0.6)
        victim = rng.randrange(SIZE)
        if not all(process.is_alive() for process in processes):
            assert not end(processes, 30)  # the training was over before
            assert all(process.exitcode == 0 for process in processes), errors(folder, attempt)
            last += 4
            continue
        os.kill(processes[victim].pid, signal.SIGKILL)
        begin = time.monotonic()
        hung = end(processes, 30)
        spent = time.monotonic() - begin
        assert not hung, f"attempt {attempt}: ranks {hung} hang after rank {victim} was killed"
        codes = [process.exitcode for process in processes]
        if codes[victim] == 0 or all(code == 0 for r, code in enumerate(codes) if r != victim):
            last += 4  # it was about to end
            continue
        assert codes[victim] == -signal.SIGKILL
        assert spent < WITHIN, f"attempt {attempt}: {spent:.1f} s until the others knew"
        for rank in range(SIZE):
            if rank != victim and codes[rank] != 0:
                text = (folder / f"error{attempt}_{rank}").read_text()
                assert f"rank {victim}" in text, f"rank {victim} was killed: {text}"
        killed += 1
    for place, name in ((folder, "last"), (tmp_path / "whole", "whole")):
        processes = start(place, name, kind, last, where(name))
        assert not end(processes, 90 + 10 * ROUNDS)
        assert not errors(place, name)
        assert [process.exitcode for process in processes] == [0] * SIZE
    want = dict(line.split() for line in lines(tmp_path / "whole"))
    for line in lines(folder):
        step, digest = line.split()
        assert want[step] == digest, f"step {step} differs from training that was not disturbed"
    assert lines(folder)[-1].split()[0] == str(last)
    # Nothing stays but the last checkpoint's files.
    assert sorted(os.listdir(folder / "kept")) == checkpoint_files(folder / "kept")


def errors(folder, attempt):
    return [path.read_text() for path in folder.glob(f"error{attempt}_*")]


def checkpoint_files(folder):
    """The files that a checkpoint needs."""
    storage = dcp.FileSystemReader(folder).read_metadata().storage_data
    return sorted({".metadata", *(info.relative_path for info in storage.values())})


def test_who_does_not_come_is_named(tmp_path):
    with pytest.raises(dist.DistBackendError, match="rank 0 did not come"):
        dist.init_process_group(
            "gloo",
            init_method=f"file://{tmp_path}/store",
            rank=1,
            world_size=2,
            timeout=timedelta(seconds=1),
        )
    assert not dist.is_initialized()
