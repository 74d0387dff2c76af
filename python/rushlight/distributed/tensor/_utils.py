"""Where parts of spread tensors lie: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

compute_local_shape_and_global_offset = _refused.function(
    "torch.distributed.tensor._utils.compute_local_shape_and_global_offset"
)
