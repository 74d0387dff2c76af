"""Between files of one and of several processes: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "_EmptyStateDictLoadPlanner",
    "dcp_to_torch_save",
    "torch_save_to_dcp",
]

_EmptyStateDictLoadPlanner = _refused.kind("_EmptyStateDictLoadPlanner", __name__)
dcp_to_torch_save = _refused.function("torch.distributed.checkpoint.format_utils.dcp_to_torch_save")
torch_save_to_dcp = _refused.function("torch.distributed.checkpoint.format_utils.torch_save_to_dcp")
