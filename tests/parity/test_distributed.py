"""Distributed tensors, tensor parallelism and `fully_shard`: four processes of each library."""

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

PROGRAM = Path(__file__).parent / "programs" / "distributed.py"
RANKS = 4


def started(library, folder):
    folder.mkdir()
    alias = [] if library == "torch" else ["-m", "rushlight", "run"]
    return [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", *alias, str(PROGRAM), str(rank), str(RANKS), folder],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]


def results(library, folder):
    """What each process has found."""
    processes = started(library, folder)
    try:
        for process in processes:
            _, errors = process.communicate(timeout=250)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]


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


def test_equals_pytorch(tmp_path):
    want = results("torch", tmp_path / "torch")
    got = results("rushlight", tmp_path / "rushlight")
    for rank in range(RANKS):
        found = list(differences(got[rank], want[rank], 2e-5))
        assert not found, (rank, found[:10])
