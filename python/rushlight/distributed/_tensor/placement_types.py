"""How a tensor lies on the devices of a mesh, under an old name."""

from __future__ import annotations

from rushlight.distributed.tensor._spec import DTensorSpec, TensorMeta
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "TensorMeta"]
