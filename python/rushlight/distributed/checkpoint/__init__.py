"""States spread over files: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "LoadPlanner",
    "Metadata",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]

DefaultLoadPlanner = _refused.kind("DefaultLoadPlanner", __name__)
DefaultSavePlanner = _refused.kind("DefaultSavePlanner", __name__)
FileSystemReader = _refused.kind("FileSystemReader", __name__)
FileSystemWriter = _refused.kind("FileSystemWriter", __name__)
LoadPlanner = _refused.kind("LoadPlanner", __name__)
Metadata = _refused.kind("Metadata", __name__)
SavePlanner = _refused.kind("SavePlanner", __name__)
StorageReader = _refused.kind("StorageReader", __name__)
StorageWriter = _refused.kind("StorageWriter", __name__)
async_save = _refused.function("torch.distributed.checkpoint.async_save")
load = _refused.function("torch.distributed.checkpoint.load")
load_state_dict = _refused.function("torch.distributed.checkpoint.load_state_dict")
save = _refused.function("torch.distributed.checkpoint.save")
save_state_dict = _refused.function("torch.distributed.checkpoint.save_state_dict")
