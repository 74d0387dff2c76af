"""Helpers of distributed modules: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "_sync_module_states",
    "_verify_param_shape_across_processes",
]

_sync_module_states = _refused.in_group("torch.distributed.utils._sync_module_states")
_verify_param_shape_across_processes = _refused.in_group(
    "torch.distributed.utils._verify_param_shape_across_processes"
)
