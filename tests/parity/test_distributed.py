"""Processes of each library: distributed tensors, tensor parallelism, `fully_shard`, hooks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rushlight import distributed as dist

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(
        not (dist.is_gloo_available() and torch.distributed.is_available()),
        reason="built without Gloo",
    ),
    pytest.mark.timeout(300),
]

PROGRAMS = Path(__file__).parent / "programs"


def started(library, program, ranks, folder):
    folder.mkdir()
    path = PROGRAMS / f"{program}.py"
    alias = [] if library == "torch" else ["-m", "rushlight", "run"]
    return [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", *alias, str(path), str(rank), str(ranks), folder],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]


def results(library, program, ranks, folder):
    """What each process has found."""
    processes = started(library, program, ranks, folder)
    try:
        for process in processes:
            _, errors = process.communicate(timeout=250)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


def differences(got, want, tolerance, path=()):
    """Where two results differ."""
    if isinstance(want, dict):
        assert list(got) == list(want), path
        for key in want:
            loose = 0.02 if key == "mixed" else tolerance
            yield from differences(got[key], want[key], loose, (*path, key))
    elif isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
        for i, value in enumerate(want):
            yield from differences(got[i], value, tolerance, (*path, i))
    elif isinstance(want, (int, float)) and isinstance(got, (int, float)):
        if not abs(got - want) <= tolerance * max(1, abs(want)):
            yield path, got, want
    elif got != want:
        yield path, got, want


@pytest.mark.parametrize(
    "program, ranks, tolerance", [("distributed", 4, 2e-5), ("ddp_hooks", 2, 1e-7)]
)
def test_equals_pytorch(program, ranks, tolerance, tmp_path):
    want = results("torch", program, ranks, tmp_path / "torch")
    got = results("rushlight", program, ranks, tmp_path / "rushlight")
    for rank in range(ranks):
        found = list(differences(got[rank], want[rank], tolerance))
        assert not found, (rank, found[:10])
