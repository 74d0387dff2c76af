"""`fully_shard` over real processes."""

import pytest

from rushlight import distributed as dist

from . import distributed_fully_shard_workers as workers
from .distributed_workers import run

pytestmark = [
    pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo"),
    pytest.mark.timeout(120),
]


@pytest.mark.parametrize(
    "cases", ["equals_one_process recomputed overlapped", "parts gradients mixed optimizers"]
)
def test_two_processes(cases, tmp_path):
    run(workers.in_turn, 2, tmp_path, cases)


@pytest.mark.parametrize("cases", ["memory hybrid flattened"])
def test_four_processes(cases, tmp_path):
    run(workers.in_turn, 4, tmp_path, cases)


@pytest.mark.parametrize("case, ranks", [("states", 2), ("with_tensor_parallelism", 4)])
def test_files(case, ranks, tmp_path):
    run(getattr(workers, case), ranks, tmp_path, str(tmp_path))
