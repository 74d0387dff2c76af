"""Checkpoints in folders of files.

Each process writes files of its own, which replace none: they are numbered on from those that are
there. Then `.metadata` is replaced in one step, which makes the new files the checkpoint, and the
files of the one before go. A save that is killed leaves the checkpoint before it whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import IO, Any

import rushlight
from rushlight.distributed.checkpoint import _storage_pickle
from rushlight.distributed.checkpoint._storage_pickle import _StorageInfo, _StoragePrefix
from rushlight.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from rushlight.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from rushlight.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from rushlight.futures import Future

__all__ = [
    "FileSystem",
    "FileSystemBase",
    "FileSystemReader",
    "FileSystemWriter",
    "SerializationFormat",
]

DEFAULT_SUFFIX = ".distcp"
CURRENT_DCP_VERSION = "1.0.0"
_METADATA_FN = ".metadata"
_DATA_FILE = re.compile(r"__\d+_(\d+)\.distcp")


class SerializationFormat(Enum):
    """The format of tensors in files.

    For an example see `distributed.checkpoint.save`.
    """

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemBase(ABC):
    """The interface of a file system.

    For an example see `distributed.checkpoint.save`.
    """

    @abstractmethod
    def create_stream(self, path, mode: str) -> contextlib.AbstractContextManager[Any]:
        """Open a file."""

    @abstractmethod
    def concat_path(self, path, suffix: str):
        """Join two paths."""

    @abstractmethod
    def rename(self, path, new_path) -> None:
        """Rename a file."""

    @abstractmethod
    def init_path(self, path):
        """Convert a path to the file system's type."""

    @abstractmethod
    def mkdir(self, path) -> None:
        """Make a folder if it does not exist."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        """Whether a name is a path of this file system."""

    @abstractmethod
    def exists(self, path) -> bool:
        """Whether a file exists."""

    @abstractmethod
    def rm_file(self, path) -> None:
        """Remove a file."""


class FileSystem(FileSystemBase):
    """The file system of this machine.

    For an example see `distributed.checkpoint.save`.
    """

    @contextlib.contextmanager
    def create_stream(self, path, mode: str) -> Iterator[io.IOBase]:
        """Open a file."""
        with open(path, mode) as stream:
            yield stream  # type: ignore[misc]

    def concat_path(self, path, suffix: str):
        """Join two paths."""
        return Path(path) / suffix

    def init_path(self, path):
        """Convert a path to the file system's type."""
        return Path(path)

    def rename(self, path, new_path) -> None:
        """Rename a file in one step."""
        os.replace(path, new_path)

    def mkdir(self, path) -> None:
        """Make a folder if it does not exist."""
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        """Whether a name is a path of this file system."""
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        return any(
            parent.exists() and os.access(parent, os.W_OK) for parent in Path(checkpoint_id).parents
        )

    def exists(self, path) -> bool:
        """Whether a file exists."""
        return Path(path).exists()

    def rm_file(self, path) -> None:
        """Remove a file."""
        Path(path).unlink()

    def ls(self, path) -> list[str]:
        """The files of a folder."""
        return [str(p) for p in Path(path).iterdir()]


def _names(fs, path) -> list[str]:
    if not hasattr(fs, "ls") or not fs.exists(path):
        return []
    return [os.path.basename(name) for name in fs.ls(path)]


def _sync_folder(path) -> None:
    if os.path.isdir(path):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _future_of(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class _InFolder:
    """Of what writes or reads a checkpoint in a folder."""

    path: Any

    @property
    def checkpoint_id(self):
        """The folder of the checkpoint."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        """Whether a name is a path of this file system."""
        return FileSystem.validate_checkpoint_id(checkpoint_id)


class _FileSystemWriter(_InFolder, StorageWriter):
    """Writes a checkpoint into a folder.

    Args:
        path: the folder.
        single_file_per_rank: whether a process writes one file, not one for each piece.
        sync_files: whether files are on the disk before the checkpoint counts.
        thread_count: no effect: a process writes one file after the other.
        per_thread_copy_ahead: no effect.
        overwrite: whether there may be a checkpoint already.
        serialization_format: the format of tensors in files.
    """

    def __init__(
        self,
        path,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        overwrite: bool = True,
        _extensions=None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        if _extensions:
            raise NotImplementedError("rushlight has no extensions of FileSystemWriter")
        if serialization_format != SerializationFormat.TORCH_SAVE:
            raise NotImplementedError(
                "rushlight writes the files of a checkpoint as torch.save does: "
                "SerializationFormat.TORCH_SAVE"
            )
        self.fs: Any = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank = single_file_per_rank
        self.sync_files = sync_files
        self.thread_count = thread_count
        self.per_thread_copy_ahead = per_thread_copy_ahead
        self.overwrite = overwrite
        self.save_id = str(uuid.uuid4())

    def reset(self, checkpoint_id=None) -> None:
        """Begin a checkpoint."""
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Nothing is to be prepared before there are plans."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Make the folder."""
        self.fs.mkdir(self.path)
        if not self.overwrite and self.fs.exists(self._get_metadata_path()):
            raise RuntimeError("Checkpoint already exists and self.overwrite=False.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each process its names: none of a file that is there."""
        matches = [_DATA_FILE.fullmatch(name) for name in _names(self.fs, self.path)]
        first = 1 + max((int(m[1]) for m in matches if m is not None), default=-1)
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{i}_", first))
            for i, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write a process's files."""
        prefix: _StoragePrefix = plan.storage_data
        items = sorted(plan.items, key=lambda item: item.type != WriteItemType.BYTE_IO)
        parts = [items] if self.single_file_per_rank else [[item] for item in items]
        results = []
        for i, part in enumerate(parts):
            if part:
                name = f"{prefix.prefix}{prefix.first + i}{DEFAULT_SUFFIX}"
                results += self._write_file(name, part, planner)
        return _future_of(results)

    def _write_file(self, name: str, items: list[WriteItem], planner) -> list[WriteResult]:
        results = []
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            offset = 0
            for item in items:
                data = planner.resolve_data(item)
                if item.type != WriteItemType.BYTE_IO:
                    packed = io.BytesIO()
                    tensor = data.detach().cpu()
                    if tensor.untyped_storage().nbytes() != tensor.numel() * tensor.itemsize:
                        tensor = tensor.clone()  # a part of a larger storage goes alone
                    rushlight.save(tensor, packed)
                    data = packed
                content = data.getbuffer()
                stream.write(content)
                size = len(content)
                results.append(WriteResult(item.index, size, _StorageInfo(name, offset, size)))
                offset += size
            stream.flush()
            if self.sync_files:
                with contextlib.suppress(AttributeError, io.UnsupportedOperation):
                    os.fsync(stream.fileno())
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Make the files the checkpoint, and remove those of the one before."""
        metadata = dataclasses.replace(metadata, version=CURRENT_DCP_VERSION)
        storage: dict[MetadataIndex, _StorageInfo] = {
            result.index: result.storage_data for part in results for result in part
        }
        metadata.storage_data = storage
        metadata.storage_meta = self.storage_meta()
        temporary = self.fs.concat_path(self.path, f"{_METADATA_FN}.tmp")
        with self.fs.create_stream(temporary, "wb") as stream:
            stream.write(_storage_pickle.dumps(metadata))
            stream.flush()
            if self.sync_files:
                with contextlib.suppress(AttributeError, io.UnsupportedOperation):
                    os.fsync(stream.fileno())
        if self.sync_files:
            _sync_folder(self.path)
        self.fs.rename(temporary, self._get_metadata_path())
        if self.sync_files:
            _sync_folder(self.path)
        used = {info.relative_path for info in storage.values()}
        for name in _names(self.fs, self.path):
            if _DATA_FILE.fullmatch(name) and name not in used:
                self.fs.rm_file(self.fs.concat_path(self.path, name))

    def storage_meta(self) -> StorageMeta | None:
        """Where this checkpoint goes."""
        return StorageMeta(checkpoint_id=str(self.path), save_id=self.save_id)

    def _get_metadata_path(self):
        return self.fs.concat_path(self.path, _METADATA_FN)


class FileSystemWriter(_FileSystemWriter):
    """Writes a checkpoint into a folder, and copies states for `async_save`.

    Args:
        path: the folder.
        single_file_per_rank: whether a process writes one file, or one for each item.
        sync_files: whether files are on the disk before the checkpoint counts.
        thread_count: how many threads write.
        per_thread_copy_ahead: bytes that a thread copies from a GPU ahead.
        cache_staged_state_dict: whether memory of copies is kept for the next checkpoint.
        overwrite: whether an old checkpoint may be replaced.
        serialization_format: the format of tensors' files.

    Example:
        >>> import tempfile
        >>> from rushlight.distributed import checkpoint
        >>> writer = checkpoint.FileSystemWriter(tempfile.mkdtemp())
        >>> _ = checkpoint.save({"weight": torch.ones(2)}, storage_writer=writer, no_dist=True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        super().__init__(
            path,
            single_file_per_rank,
            sync_files,
            thread_count,
            per_thread_copy_ahead,
            overwrite,
            _extensions,
            serialization_format,
        )
        self.cache_staged_state_dict = cache_staged_state_dict

    def stage(self, state_dict):
        """Copy a state to the CPU."""
        from rushlight.distributed.checkpoint.staging import copy_to_cpu

        return copy_to_cpu(state_dict)


class FileSystemReader(_InFolder, StorageReader):
    """Reads a checkpoint from a folder.

    Args:
        path: the folder.

    Example:
        >>> import tempfile
        >>> from rushlight.distributed import checkpoint
        >>> folder = tempfile.mkdtemp()
        >>> _ = checkpoint.save({"weight": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        >>> list(checkpoint.FileSystemReader(folder).read_metadata().state_dict_metadata)
        ['weight']
    """

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        if _extension_registry is not None:
            raise NotImplementedError("rushlight has no extensions of FileSystemReader")
        self.fs: Any = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())

    def reset(self, checkpoint_id=None) -> None:
        """Set the checkpoint."""
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def _slice_file(self, file, sinfo: _StorageInfo) -> IO[bytes]:
        file.seek(sinfo.offset)
        content = file.read(sinfo.length)
        if len(content) != sinfo.length:
            raise RuntimeError(f"the file {sinfo.relative_path} of the checkpoint is cut short")
        return io.BytesIO(content)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items of a plan, file by file."""
        by_file: dict[str, list] = {}
        for item in plan.items:
            info = self.storage_data[item.storage_index]
            if info.transform_descriptors:
                raise NotImplementedError(
                    f"rushlight has no extensions {info.transform_descriptors} of checkpoints"
                )
            by_file.setdefault(info.relative_path, []).append((info, item))
        for name, parts in by_file.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                last: Any = (None, None)
                for info, item in sorted(parts, key=lambda part: part[0].offset):
                    if item.type == LoadItemType.BYTE_IO:
                        planner.load_bytes(item, self._slice_file(stream, info))  # type: ignore
                        continue
                    if last[0] is not info:  # pieces of one tensor may go to several places
                        content = self._slice_file(stream, info)
                        last = info, rushlight.load(content, map_location="cpu", weights_only=True)
                    _fill(planner, item, last[1])
        return _future_of(None)

    def _get_metadata_path(self):
        return self.fs.concat_path(self.path, _METADATA_FN)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The metadata of the checkpoint."""
        with self.fs.create_stream(self._get_metadata_path(), "rb") as stream:
            metadata = _storage_pickle.load(stream)
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Set the metadata, which says where the pieces are."""
        self.storage_data = metadata.storage_data
        assert self.storage_data is not None

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan unchanged."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans unchanged."""
        return plans


def _fill(planner: LoadPlanner, item, stored) -> None:
    """Copy the box of a stored tensor that an item wants."""
    for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
        stored = stored.narrow(dim, begin, length)
    target = planner.resolve_tensor(item).detach()
    if target.size() != stored.size():
        raise AssertionError(
            f"req {item.storage_index} mismatch sizes {target.size()} vs {stored.size()}"
        )
    target.copy_(stored)
    planner.commit_tensor(item, target)
