"""The pickle in which a checkpoint says what it has: PyTorch's names, read as data."""

from __future__ import annotations

import dataclasses
import pathlib
import pickle
from typing import Any

from rushlight import _C
from rushlight._files import pickled as _pickled
from rushlight._files.safe_load import find_public, member
from rushlight.distributed.checkpoint import metadata as _metadata

# Where a pickle may find what it mentions, beside sizes, dtypes and layouts.
_PATHS = {"PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path"}
_METADATA = {*_metadata.__all__, "_MEM_FORMAT_ENCODING"}
_FILES = "rushlight.distributed.checkpoint.filesystem"  # where pickles find these classes


@dataclasses.dataclass
class _StorageInfo:
    """Where a piece is: a file, and which bytes of it."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if v is not None}


@dataclasses.dataclass
class _StoragePrefix:
    """How the names of a process's files begin, and the number of the first."""

    prefix: str
    first: int = 0


_FILE_CLASSES = {"_StorageInfo": _StorageInfo, "_StoragePrefix": _StoragePrefix}
for _kind in _FILE_CLASSES.values():
    _kind.__module__ = _FILES


def dumps(metadata: Any) -> bytes:
    """The pickle of a checkpoint's `Metadata`."""
    return _pickled.pickle_bytes(metadata, _pickled.StorageKeys(), pickle, 3)


def _get_member(kind: Any, name: str) -> Any:
    return member(kind, name, [_metadata._MEM_FORMAT_ENCODING])


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch.distributed.checkpoint.metadata" and name in _METADATA:
            return getattr(_metadata, name)
        if module == "torch.distributed.checkpoint.filesystem" and name in _FILE_CLASSES:
            return _FILE_CLASSES[name]
        if module.partition(".")[0] == "pathlib" and name in _PATHS:
            return pathlib.PurePosixPath if "Posix" in name else getattr(pathlib, name)
        if (module, name) == ("builtins", "getattr"):
            return _get_member
        if (module, name) in (("collections", "OrderedDict"), ("builtins", "set")):
            return super().find_class(module, name)
        known = find_public(module, name)
        if known is _C.Size or module == "torch.serialization" or isinstance(known, _C.dtype):
            return known
        raise pickle.UnpicklingError(
            f"the metadata of a checkpoint mentions {module}.{name}, which is no part of one"
        )


def load(stream) -> Any:
    """The `Metadata` that a pickle holds; nothing in it is run."""
    found = _Unpickler(stream).load()
    if not isinstance(found, _metadata.Metadata):
        raise pickle.UnpicklingError(f"no Metadata but {type(found)}")
    return found
