"""The safetensors format: a file of named tensors, which is read without running code.

The functions are those of the package `safetensors.torch`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from rushlight import _C

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rushlight import Tensor

__all__ = [
    "load",
    "load_file",
    "load_sharded",
    "metadata",
    "save",
    "save_file",
    "save_sharded",
]

_INDEX = "model.safetensors.index.json"


def _pairs(tensors, notes):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    return list(tensors.items()), list((notes or {}).items())


def _copy_to_device(tensors, device):
    if str(device) == "cpu":
        return dict(tensors)
    return {name: tensor.to(device) for name, tensor in tensors}


def save_file(
    tensors: Mapping[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Save tensors under their names; an existing file is replaced in one step.

    Args:
        tensors: a dict of tensors. Those that share memory are written one by one.
        filename: a path.
        metadata: a dict of strings to go with them.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
        >>> torch.safetensors.save_file({"weight": torch.ones(2, 3)}, path)
        >>> torch.safetensors.load_file(path)["weight"].shape
        torch.Size([2, 3])
    """
    _C._save_safetensors(*_pairs(tensors, metadata), os.fsdecode(os.fspath(filename)))


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, Any] | None = None) -> bytes:
    """The bytes of a safetensors file.

    Args:
        tensors: a dict of tensors.
        metadata: a dict of strings to go with them.

    Example:
        >>> data = torch.safetensors.save({"weight": torch.tensor([5.0])})
        >>> torch.safetensors.load(data)
        {'weight': tensor([5.])}
    """
    return _C._save_safetensors(*_pairs(tensors, metadata), None)


def load_file(
    filename: str | os.PathLike[str], device: str = "cpu", *, mmap: bool = True
) -> dict[str, Tensor]:
    """Load the tensors of a file as a dict.

    Args:
        filename: a path.
        device: the device of the tensors.
        mmap: map the file: tensors are read when they are used, and written to memory only.

    Raises:
        RuntimeError: if the file is damaged.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
        >>> torch.safetensors.save_file({"bias": torch.tensor([4.0])}, path)
        >>> torch.safetensors.load_file(path)
        {'bias': tensor([4.])}
    """
    return _copy_to_device(_C._load_safetensors(os.fsdecode(os.fspath(filename)), mmap)[0], device)


def load(data: Any) -> dict[str, Tensor]:
    """Load tensors from the bytes of a file as a dict.

    Args:
        data: the bytes.

    Raises:
        RuntimeError: they are damaged.

    Example:
        >>> torch.safetensors.load(torch.safetensors.save({"bias": torch.tensor([4.0])}))
        {'bias': tensor([4.])}
    """
    return _copy_to_device(_C._load_safetensors(data, False)[0], "cpu")


def metadata(filename: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata strings of a file.

    Args:
        filename: a path.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
        >>> torch.safetensors.save_file({}, path, metadata={"epoch": "12"})
        >>> torch.safetensors.metadata(path)
        {'epoch': '12'}
    """
    return dict(_C._load_safetensors(os.fsdecode(os.fspath(filename)), True)[1])


# ---- several files with an index, as Hugging Face writes large models ----


def _shards(tensors, most):
    """Lists of names, in order, whose tensors have at most so many bytes together."""
    shards: list[list[str]] = [[]]
    size = 0
    for name, tensor in tensors.items():
        nbytes = tensor.numel() * tensor.element_size()
        if shards[-1] and size + nbytes > most:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += nbytes
    return shards


def save_sharded(
    tensors: Mapping[str, Tensor],
    folder: Any,
    max_shard_size: int = 5_000_000_000,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Save tensors in several files of limited size, with an index of their places.

    The index is written last: until then a folder that had one goes on meaning the old files, if
    these have other names.

    Args:
        tensors: a dict of tensors.
        folder: where the files go; it is made if there is none.
        max_shard_size: bytes of tensors in a file; a larger tensor gets a file of its own.
        metadata: a dict of strings to go with each file.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> tensors = {"a": torch.zeros(100), "b": torch.zeros(100)}
        >>> _ = torch.safetensors.save_sharded(tensors, folder, max_shard_size=500)
        >>> len(os.listdir(folder))
        3
    """
    _pairs(tensors, metadata)
    os.makedirs(folder, exist_ok=True)
    shards = _shards(tensors, max_shard_size)
    places = {}
    for number, names in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        save_file({name: tensors[name] for name in names}, os.path.join(folder, file), metadata)
        places.update(dict.fromkeys(names, file))
    total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    path = os.path.join(folder, _INDEX)
    with open(path + ".part", "w", encoding="utf-8") as stream:
        json.dump(index, stream, indent=2)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(path + ".part", path)


def load_sharded(
    path: str | os.PathLike[str], device: str = "cpu", *, mmap: bool = True
) -> dict[str, Tensor]:
    """Load the tensors of several files as a dict.

    Args:
        path: the index file, or the folder that contains it.
        device, mmap: as `load_file` has them.

    Raises:
        RuntimeError: the index is damaged, or a file lacks a tensor.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> tensors = {"a": torch.zeros(100), "b": torch.zeros(100)}
        >>> _ = torch.safetensors.save_sharded(tensors, folder, max_shard_size=500)
        >>> sorted(torch.safetensors.load_sharded(folder))
        ['a', 'b']
    """
    path = os.path.join(path, _INDEX) if os.path.isdir(path) else os.fspath(path)
    folder = os.path.dirname(path)
    with open(path, encoding="utf-8") as stream:
        try:
            places = dict(json.load(stream)["weight_map"])
        except (ValueError, KeyError, TypeError) as error:
            raise RuntimeError(f"{path} is no index of safetensors files") from error
    found = {}
    for file in dict.fromkeys(places.values()):
        # A file of the folder: an index may not lead elsewhere.
        if not isinstance(file, str) or os.path.basename(file) != file or file in ("", ".", ".."):
            raise RuntimeError(f"{path} names {file!r}, which is no file of its folder")
        found[file] = load_file(os.path.join(folder, file), device, mmap=mmap)
    for name, file in places.items():
        if name not in found[file]:
            raise RuntimeError(f"{file} has no tensor {name!r}, which {path} says it has")
    return {name: found[file][name] for name, file in places.items()}
