"""Distributed tensors: one tensor in pieces in many processes, with ops on the full tensor."""

from __future__ import annotations

from rushlight._lazy import lazy
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.tensor import _dispatch as _dispatch  # enters what handles ops
from rushlight.distributed.tensor._dtensor import (
    DTensor,
    distribute_module,
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

with lazy(__name__):
    from rushlight.distributed.tensor import debug as debug
    from rushlight.distributed.tensor import experimental as experimental
    from rushlight.distributed.tensor import parallel as parallel

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

DTensor.__module__ = __name__
