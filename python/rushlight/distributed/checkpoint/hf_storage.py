"""Checkpoints in folders of safetensors files, in the layout of Hugging Face's hub.

A file holds whole tensors, or each process's pieces of them: then the strings of the file say where
a piece begins. Such files can be made into those of whole tensors afterwards.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import safetensors
from rushlight.distributed import _collectives, _world
from rushlight.distributed.checkpoint._storage_pickle import _StorageInfo
from rushlight.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    _fill,
    _future_of,
    _names,
)
from rushlight.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from rushlight.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItemType,
)
from rushlight.distributed.checkpoint.storage import WriteResult
from rushlight.futures import Future

if TYPE_CHECKING:
    from rushlight.distributed import ProcessGroup


__all__ = [
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "consolidate_safetensors_files",
    "consolidate_safetensors_files_on_every_rank",
]

_INDEX = "model.safetensors.index.json"
_SHARDED = "sharded"  # the folder of the pieces, where whole tensors are made of them
_PLACES = "DCP_SHARDING_INFO"  # the string that says where pieces begin


def _file_name(number: int, count: int, process: int | None = None) -> str:
    piece = "" if process is None else f"shard-{process:05}-"
    return f"{piece}model-{number:05}-of-{count:05}.safetensors"


def _write_index(folder, places: dict[str, str], total: int) -> None:
    path = os.path.join(folder, _INDEX)
    with open(f"{path}.part", "w", encoding="utf-8") as stream:
        json.dump({"metadata": {"total_size": total}, "weight_map": places}, stream, indent=2)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(f"{path}.part", path)


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes a checkpoint of tensors as safetensors files. Each file is replaced in one step.

    Args:
        path: the folder.
        fqn_to_index_mapping: the number, from 1, of the file that a tensor goes to, by the tensor's
            name; by default all go to one.
        thread_count: no effect: a process writes one file after the other.
        save_distributed: whether each process writes its pieces; without it the first one has all.
        enable_consolidation: whether the pieces, in the folder `sharded`, are made into whole
            tensors in the end, by the first process.
        thread_count_consolidation: no effect, as above.

    Example:
        >>> import os, tempfile
        >>> from rushlight.distributed import checkpoint
        >>> folder = tempfile.mkdtemp()
        >>> writer = checkpoint.HuggingFaceStorageWriter(folder)
        >>> _ = checkpoint.save({"weight": torch.ones(2)}, storage_writer=writer, no_dist=True)
        >>> [name for name in os.listdir(folder) if name.endswith(".safetensors")]
        ['model-00001-of-00001.safetensors']
    """

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation
        self.thread_count_consolidation = thread_count_consolidation
        self.consolidated_output_path: str | None = None
        self._enter()

    def _enter(self) -> None:
        if self.enable_consolidation:
            self.consolidated_output_path = str(self.path)
            self.path = self.fs.concat_path(self.path, _SHARDED)

    def reset(self, checkpoint_id=None) -> None:
        """Set the checkpoint."""
        super().reset(checkpoint_id)
        if checkpoint_id:
            self._enter()

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each process its file number."""
        return [dataclasses.replace(plan, storage_data=i) for i, plan in enumerate(plans, 1)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the files of a process."""
        chosen = self.fqn_to_index_mapping
        count = 1 if chosen is None else max(chosen.values())
        process = plan.storage_data if self.save_distributed else None
        files: dict[int, list] = {}
        for item in plan.items:
            if item.type == WriteItemType.BYTE_IO:
                raise ValueError(f"safetensors files hold tensors alone, not {item.index.fqn}")
            number = 1 if chosen is None else chosen[item.index.fqn]
            files.setdefault(number, []).append(item)
        results = []
        for number, items in files.items():
            name = _file_name(number, count, process)
            results += self._write_tensors(name, items, planner)
        return _future_of(results)

    def _write_tensors(self, name, items, planner) -> list[WriteResult]:
        tensors: dict[str, rushlight.Tensor] = {}
        places: dict[str, Any] = {}
        results = []
        for item in items:
            fqn = item.index.fqn
            if fqn in tensors:
                raise ValueError(f"{name}: a process has two pieces of {fqn}, a file only one")
            tensors[fqn] = planner.resolve_data(item).detach().cpu()
            offsets = item.index.offset
            places[fqn] = {"saved_offsets": list(offsets or [0] * tensors[fqn].dim())}
            size = tensors[fqn].numel() * tensors[fqn].element_size()
            results.append(WriteResult(item.index, size, _StorageInfo(name, 0, size)))
        notes = {"format": "pt"}
        if self.save_distributed:
            notes |= {"DCP_VERSION": "1.0", _PLACES: json.dumps(places)}
        safetensors.save_file(tensors, self.fs.concat_path(self.path, name), notes)
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the index of full tensors, which are merged from their pieces if asked."""
        if not self.save_distributed:
            flat = [result for part in results for result in part]
            places = {result.index.fqn: result.storage_data.relative_path for result in flat}
            _write_index(self.path, places, sum(result.size_in_bytes for result in flat))
        elif self.consolidated_output_path is not None:
            chosen = self.fqn_to_index_mapping or dict.fromkeys(metadata.state_dict_metadata, 1)
            consolidate_safetensors_files(
                str(self.path), self.consolidated_output_path, chosen, self.thread_count
            )

    @property
    def metadata_path(self) -> str:
        """The name of the index."""
        return _INDEX


class HuggingFaceStorageReader(FileSystemReader):
    """Reads a checkpoint of safetensors files, with full tensors or pieces.

    Args:
        path: the folder.
        thread_count: no effect: a process reads one file after the other, as it needs them.

    Example:
        >>> import os, tempfile
        >>> from rushlight.distributed import checkpoint
        >>> folder = tempfile.mkdtemp()
        >>> torch.safetensors.save_file(
        ...     {"weight": torch.ones(2)}, os.path.join(folder, "net.safetensors")
        ... )
        >>> state, reader = {"weight": torch.zeros(2)}, checkpoint.HuggingFaceStorageReader(folder)
        >>> checkpoint.load(state, storage_reader=reader, no_dist=True)
        >>> state
        {'weight': tensor([1., 1.])}
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The metadata of the checkpoint, from the headers of the files."""
        found: dict[str, TensorStorageMetadata] = {}
        storage: dict[MetadataIndex, _StorageInfo] = {}
        for name in sorted(_names(self.fs, self.path)):
            if not name.endswith(".safetensors"):
                continue
            tensors, places = _open(os.path.join(self.path, name))
            for fqn, tensor in tensors.items():
                offsets = rushlight.Size(places.get(fqn) or [0] * tensor.dim())
                end = [a + b for a, b in zip(offsets, tensor.shape, strict=True)]
                chunk = ChunkStorageMetadata(offsets, tensor.shape)
                if fqn in found:
                    found[fqn].chunks.append(chunk)
                    end = [max(a, b) for a, b in zip(found[fqn].size, end, strict=True)]
                    found[fqn].size = rushlight.Size(end)
                else:
                    properties = TensorProperties(dtype=tensor.dtype)
                    found[fqn] = TensorStorageMetadata(properties, rushlight.Size(end), [chunk])
                storage[MetadataIndex(fqn, offsets)] = _StorageInfo(name, 0, 0)
        if not found:
            raise FileNotFoundError(f"{self.path} has no safetensors files")
        meta = StorageMeta(load_id=self.load_id)
        return Metadata(state_dict_metadata=found, storage_data=storage, storage_meta=meta)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items of a plan, file by file."""
        by_file: dict[str, list] = {}
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                raise ValueError(
                    f"safetensors files hold tensors alone, not {item.storage_index.fqn}"
                )
            name = self.storage_data[item.storage_index].relative_path
            by_file.setdefault(name, []).append(item)
        for name, items in by_file.items():
            tensors, _ = _open(os.path.join(self.path, name))
            for item in items:
                _fill(planner, item, tensors[item.storage_index.fqn])
        return _future_of(None)


def _open(path) -> tuple[dict[str, rushlight.Tensor], dict[str, list[int]]]:
    """(The tensors of a file, read when they are used; where they begin in whole ones)."""
    text = safetensors.metadata(path).get(_PLACES)
    places = json.loads(text) if text else {}
    return safetensors.load_file(path), {k: v["saved_offsets"] for k, v in places.items()}


def _make_file(input_dir, output_dir, name, fqns) -> None:
    """Write a file of whole tensors."""
    sizes: dict[str, list[int]] = {}
    pieces: dict[str, list] = {fqn: [] for fqn in fqns}
    for file in sorted(os.listdir(input_dir)):
        if not file.endswith(".safetensors"):
            continue
        tensors, places = _open(os.path.join(input_dir, file))
        for fqn in pieces.keys() & tensors.keys():
            piece = tensors[fqn]
            offsets = places.get(fqn) or [0] * piece.dim()
            end = [a + b for a, b in zip(offsets, piece.shape, strict=True)]
            before = sizes.get(fqn, end)
            sizes[fqn] = [max(a, b) for a, b in zip(before, end, strict=True)]
            pieces[fqn].append((offsets, piece))
    whole: dict[str, rushlight.Tensor] = {}
    for fqn, parts in pieces.items():
        if not parts:
            raise ValueError(f"no file of {input_dir} has {fqn}")
        out = whole[fqn] = parts[0][1].new_empty(sizes[fqn])
        for offsets, piece in parts:
            place = out
            for dim, (begin, length) in enumerate(zip(offsets, piece.shape, strict=True)):
                place = place.narrow(dim, begin, length)
            place.copy_(piece)
    os.makedirs(output_dir, exist_ok=True)
    safetensors.save_file(whole, os.path.join(output_dir, name), {"format": "pt"})


def _by_file(fqn_to_index_mapping: dict[str, int]) -> dict[str, list[str]]:
    count = max(fqn_to_index_mapping.values())
    files: dict[str, list[str]] = {}
    for fqn, number in fqn_to_index_mapping.items():
        files.setdefault(_file_name(number, count), []).append(fqn)
    return files


def _index_of(output_dir, files) -> None:
    places = {fqn: name for name, fqns in files.items() for fqn in fqns}
    total = 0
    for name, fqns in files.items():
        tensors = safetensors.load_file(os.path.join(output_dir, name))
        total += sum(tensors[fqn].numel() * tensors[fqn].element_size() for fqn in fqns)
    _write_index(output_dir, places, total)


def consolidate_safetensors_files(
    input_dir: str, output_dir: str, fqn_to_index_mapping: dict[str, int], num_threads: int = 1
) -> None:
    """Merge files with pieces to files with full tensors, and write their index.

    Args:
        input_dir: the folder of the pieces.
        output_dir: the folder of the whole tensors.
        fqn_to_index_mapping: the number, from 1, of each tensor's file.
        num_threads: no effect: one file is made after the other, in memory.

    Raises:
        ValueError: no file has a tensor that is asked for.

    For an example see `distributed.checkpoint.save`.
    """
    files = _by_file(fqn_to_index_mapping)
    for name, fqns in files.items():
        _make_file(input_dir, output_dir, name, fqns)
    _index_of(output_dir, files)


def consolidate_safetensors_files_on_every_rank(
    input_dir: str,
    output_dir: str,
    fqn_to_index_mapping: dict[str, int],
    num_threads: int = 1,
    process_group: ProcessGroup | None = None,
) -> None:
    """`consolidate_safetensors_files` in the processes of a group, each of which writes some files.

    All call it; arguments are those of `consolidate_safetensors_files`.

    Args:
        process_group: the processes; all by default.
        input_dir: the folder of the parts.
        output_dir: the folder of the whole files.
        fqn_to_index_mapping: the number of the file that each tensor goes to, by name.
        num_threads: how many files a process writes at once.

    For an example see `distributed.checkpoint.save`.
    """
    rank, size = 0, 1
    if _world.is_initialized():
        rank, size = _world.get_rank(process_group), _world.get_world_size(process_group)
    files = _by_file(fqn_to_index_mapping)
    for name, fqns in list(files.items())[rank::size]:
        _make_file(input_dir, output_dir, name, fqns)
    if size > 1:
        _collectives.barrier(process_group)
    if rank == 0:
        _index_of(output_dir, files)
