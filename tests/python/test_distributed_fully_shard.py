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
    "case", ["equals_one_process", "parts", "gradients", "mixed", "optimizers", "recomputed"]
)
def test_two_processes(case, tmp_path):
    run(getattr(workers, case), 2, tmp_path)


@pytest.mark.parametrize("case", ["hybrid", "flattened", "memory"])
def test_four_processes(case, tmp_path):
    run(getattr(workers, case), 4, tmp_path)


@pytest.mark.parametrize("case", ["states", "with_tensor_parallelism"])
def test_files(case, tmp_path):
    run(getattr(workers, case), 4, tmp_path, str(tmp_path))
