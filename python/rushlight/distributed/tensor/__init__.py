"""Tensors spread over devices: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]

DTensor = _refused.kind(
    "DTensor",
    __name__,
    from_local=staticmethod(_refused.function("torch.distributed.tensor.DTensor.from_local")),
)
distribute_module = _refused.function("torch.distributed.tensor.distribute_module")
distribute_tensor = _refused.function("torch.distributed.tensor.distribute_tensor")
empty = _refused.function("torch.distributed.tensor.empty")
full = _refused.function("torch.distributed.tensor.full")
ones = _refused.function("torch.distributed.tensor.ones")
rand = _refused.function("torch.distributed.tensor.rand")
randn = _refused.function("torch.distributed.tensor.randn")
zeros = _refused.function("torch.distributed.tensor.zeros")
