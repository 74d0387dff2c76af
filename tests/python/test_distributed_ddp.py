"""DistributedDataParallel over real processes."""

import pytest

from rushlight import distributed as dist

from . import distributed_accumulation_workers as accumulation
from . import distributed_ddp_traffic_workers as traffic
from . import distributed_ddp_workers as workers
from .distributed_workers import run

pytestmark = [
    pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo"),
    pytest.mark.timeout(120),
]


@pytest.mark.parametrize(
    "case",
    [
        "equals_one_process",
        "unused",
        "thin",
        "normalised",
        "differentiable",
        "functional_gradients",
        "sharded_states",
        "mixed",
        "moved",
        "replicated",
    ],
)
def test_two_processes(case, tmp_path):
    run(getattr(workers, case), 2, tmp_path)


@pytest.mark.parametrize("case", ["hooks", "shown", "hooks_by_name", "overlapped", "in_backward"])
def test_traffic_of_two_processes(case, tmp_path):
    run(getattr(traffic, case), 2, tmp_path)


def test_uneven_inputs(tmp_path):
    run(workers.uneven, 3, tmp_path)


def test_grid(tmp_path):
    run(workers.grid, 4, tmp_path)


@pytest.mark.parametrize("hierarchical", [False, True])
def test_local_sgd(hierarchical, tmp_path):
    run(traffic.local_sgd, 4, tmp_path, hierarchical)


@pytest.mark.parametrize("seeds", [2, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ranks", [2, 3])
def test_passes_in_any_order(ranks, seeds, tmp_path):
    run(accumulation.all_kinds, ranks, tmp_path, seeds)


def test_who_was_left_out_is_named(tmp_path):
    run(accumulation.accused, 2, tmp_path)


@pytest.mark.parametrize("ranks", [2, 3])
def test_outputs_that_the_loss_does_not_use(ranks, tmp_path):
    run(accumulation.outputs_without_use, ranks, tmp_path)
