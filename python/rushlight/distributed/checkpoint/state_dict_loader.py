"""Loading states that are spread over files: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused
from rushlight.distributed.checkpoint import load, load_state_dict

__all__ = [
    "_load_state_dict",
    "load",
    "load_state_dict",
]

_load_state_dict = _refused.function(
    "torch.distributed.checkpoint.state_dict_loader._load_state_dict"
)
