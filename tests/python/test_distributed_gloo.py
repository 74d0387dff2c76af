"""Collectives over real processes, and what becomes of them when one ends."""

import os
import subprocess
import sys
import time

import pytest

import rushlight as torch
from rushlight import distributed as dist

from . import distributed_workers as workers

pytestmark = [
    pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo"),
    pytest.mark.timeout(120),
]


@pytest.mark.parametrize("ranks", [2, 3])
def test_reductions(ranks, tmp_path):
    workers.run(workers.reductions, ranks, tmp_path)


@pytest.mark.parametrize("ranks", [2, 3])
def test_movements(ranks, tmp_path):
    workers.run(workers.movements, ranks, tmp_path)


@pytest.mark.parametrize("case", ["in_turns", "in_callbacks"])
def test_order(case, tmp_path):
    workers.run(getattr(workers, case), 3, tmp_path)


def test_messages(tmp_path):
    workers.run(workers.messages, 3, tmp_path)


def test_messages_to_oneself_are_refused():
    """There is no connection that they could take."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        group, x = dist.group.WORLD, torch.ones(3)
        for call in (
            lambda: dist.recv(x, 0),
            lambda: dist.recv(x),
            lambda: dist.irecv(x, group_src=0),
            lambda: group.recv([x], 0, 0),
            lambda: group.send([x], 0, 0),
            lambda: group.recv([x], 7, 0),
            lambda: group.send([x], -1, 0),
        ):
            with pytest.raises(RuntimeError, match="rank 0 of 1 sends to other ranks"):
                call()
    finally:
        dist.destroy_process_group()


def test_groups(tmp_path):
    workers.run(workers.groups, 3, tmp_path)


def test_who_is_missing(tmp_path):
    workers.run(workers.missing, 3, tmp_path)


def test_a_rank_that_ends(tmp_path):
    begin = time.monotonic()
    workers.run(workers.death, 3, tmp_path, str(tmp_path))
    assert time.monotonic() - begin < 20  # far below the timeout
    assert (tmp_path / "seen0").exists() and (tmp_path / "seen2").exists()


@pytest.mark.parametrize(
    "case", ["late", "wrong", "mismatch", "other_collective", "pending", "checked"]
)
def test_faults(case, tmp_path):
    workers.run(getattr(workers, case), 2, tmp_path)


def test_env(tmp_path):
    program = (
        "import rushlight as torch, rushlight.distributed as dist\n"
        "dist.init_process_group()\n"
        "t = torch.ones(2) * dist.get_rank()\n"
        "dist.all_reduce(t)\n"
        "assert t.tolist() == [1.0, 1.0]\n"
        "w = dist.barrier(async_op=True)\n"  # a program that ends without a word
    )
    store = dist.TCPStore("localhost", 0, 1, True)
    port = store.port
    del store
    base = {**os.environ, "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    names = [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")]
    processes = [
        subprocess.Popen([sys.executable, "-c", program], env={**base, rank: str(i), size: "2"})
        for i, (rank, size) in enumerate(names)
    ]
    assert [p.wait(60) for p in processes] == [0, 0]


def test_ended_in_callbacks(tmp_path):
    workers.run(workers.ended_in_callbacks, 2, tmp_path)


def test_dropped_while_a_callback_runs():
    """The last holder of an engine waits for its callbacks, which want Python's lock; or is one of them."""
    program = (
        "import datetime, threading, time\n"
        "import rushlight as torch, rushlight.distributed as dist\n"
        "from rushlight.distributed.distributed_c10d import HashStore\n"
        "from rushlight import _C\n"
        "wait = datetime.timedelta(seconds=20)\n"
        "make = lambda: _C._distributed._make_backend('gloo', HashStore(), 0, 1, wait, '', '', False)\n"
        "for dropped_by_callback in (False, True):\n"
        "    engine, done = make(), threading.Event()\n"
        "    work = engine.barrier(wait, False)\n"
        "    box = [engine]\n"
        "    def callback():\n"
        "        time.sleep(0.2)\n"
        "        if dropped_by_callback:\n"
        "            box.clear()\n"
        "        done.set()\n"
        "    if not dropped_by_callback:\n"
        "        box.clear()\n"
        "    works = [engine.all_reduce([torch.ones(2)], 0, 1.0, wait, False) for _ in range(3)]\n"
        "    works[-1].then(callback)\n"
        "    del engine\n"
        "    assert done.wait(20)\n"
        "time.sleep(0.3)\n"
    )
    subprocess.run([sys.executable, "-X", "faulthandler", "-c", program], check=True, timeout=60)


def test_a_program_ends_while_a_callback_runs():
    """Whether the group is still known or was destroyed by the callback itself."""
    program = (
        "import sys, time\n"
        "import rushlight as torch, rushlight.distributed as dist\n"
        "from rushlight.distributed.distributed_c10d import HashStore\n"
        "dist.init_process_group('gloo', store=HashStore(), rank=0, world_size=1)\n"
        "def callback(future):\n"
        "    if sys.argv[1] == 'destroyed':\n"
        "        dist.destroy_process_group()\n"
        "    began.append(1)\n"
        "    time.sleep(0.5)\n"
        "    print('done', flush=True)\n"
        "began = []\n"
        "dist.barrier(async_op=True).get_future().then(callback)\n"
        "while not began:\n"
        "    time.sleep(0.01)\n"
    )
    for ending in ("known", "destroyed"):
        command = [sys.executable, "-c", program, ending]
        assert subprocess.run(command, check=True, timeout=60, stdout=-1).stdout == b"done\n"


def test_nothing_is_loaded_unasked():
    program = (
        "import rushlight.distributed as dist\n"
        "assert dist.is_gloo_available()\n"
        "assert 'gloo' not in open('/proc/self/maps').read()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_breakpoint(tmp_path):
    """One process stops, the other waits for it."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, rushlight as torch, rushlight.distributed as dist\n"
        "rank = int(sys.argv[1])\n"
        f"dist.init_process_group('gloo', 'file://{tmp_path}/store', rank=rank, world_size=2)\n"
        "for step in range(2):\n"
        "    value = 40 + step\n"
        "    dist.breakpoint(rank=1, skip=1)\n"
        "print('done', value)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, program, str(rank)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    out, _ = processes[1].communicate("up\np 'value', value\nc\n", timeout=60)
    other, _ = processes[0].communicate(timeout=60)
    assert "('value', 41)" in out and "done 41" in out and other == "done 41\n"
