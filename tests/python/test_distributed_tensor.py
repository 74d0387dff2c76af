"""Distributed tensors over real processes."""

import pytest

from rushlight import distributed as dist

from . import distributed_tensor_workers as workers
from .distributed_workers import run

pytestmark = [
    pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo"),
    pytest.mark.timeout(120),
]


@pytest.mark.parametrize(
    ("case", "ranks", "args"),
    [
        ("ops", 2, (1,)),
        ("ops", 4, (2,)),
        ("moves", 3, (1,)),
        ("moves", 4, (2,)),
        ("thin", 2, ()),
        ("made", 2, ()),
        ("trained", 2, ()),
        ("parallel", 2, (False,)),
        ("parallel", 2, (True,)),
        ("losses", 3, ()),
        ("tried", 2, ()),
    ],
)
def test_processes(case, ranks, args, tmp_path):
    run(getattr(workers, case), ranks, tmp_path, *args)


def test_checkpoints(tmp_path):
    run(workers.saved, 2, tmp_path, str(tmp_path))


def test_old_names():
    from rushlight.distributed import _tensor, tensor
    from rushlight.distributed._tensor import device_mesh, placement_types
    from rushlight.distributed.tensor import _dtensor_spec
    from rushlight.distributed.tensor import device_mesh as beside

    assert _tensor.__all__ == tensor.__all__ and _tensor.zeros is tensor.zeros
    assert placement_types.Shard is tensor.Shard
    assert placement_types.DTensorSpec is _dtensor_spec.DTensorSpec
    assert device_mesh.DeviceMesh is beside.DeviceMesh is tensor.DeviceMesh
