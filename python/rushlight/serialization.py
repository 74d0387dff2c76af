"""`save` and `load`: PyTorch's .pt files.

A file is a zip archive: a pickle whose tensors name their storages, and the storages. By default a
file is read as data (`weights_only=True`, see `_safe_load.py`). Files carry PyTorch's names
(`torch._utils._rebuild_tensor_v2`), so that PyTorch reads them too.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from rushlight import _C
from rushlight._pickled import Saved, Storages, pickled, unsafe_unpickler
from rushlight._safe_load import (
    SafeObjects,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | _C.device | str | dict[str, str] | None


_skipping = threading.local()


class skip_data:
    """Within it `save` writes zeros for the elements of tensors, and `load` leaves them undefined.

    Sizes and places in the file are those of a whole one, which other means may fill or read.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError("skip_data(materialize_fake_tensors=True) is not supported")

    def __enter__(self):
        _skipping.depth = getattr(_skipping, "depth", 0) + 1

    def __exit__(self, kind, error, trace):
        _skipping.depth -= 1


def _skips():
    return getattr(_skipping, "depth", 0) > 0


def _bytes_of_zeros(item):
    return _C.ops.zeros(item.nbytes(), dtype=_C.uint8).untyped_storage()


def _undefined(key, dtype, numel):
    """A storage in the place of one of a file."""
    return _C.ops.empty(numel * dtype.itemsize, dtype=_C.uint8).untyped_storage()


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Saves an object with all tensors in it; tensors that share memory do so in the file.

    A file at a path is replaced in one step: if saving fails, the old one stays as it was.

    Args:
        obj: anything that can be pickled.
        f: a path, or an object with a `write` method.
        pickle_module: what pickles everything but tensors.
        pickle_protocol: protocols above 3 are written as 3.

    Raises:
        RuntimeError: if the folder does not exist.
        OSError: if the file cannot be written.
    """
    is_path = isinstance(f, str | os.PathLike)
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    if not isinstance(pickle_protocol, int) or pickle_protocol < 0:
        raise ValueError(f"pickle_protocol must be an int from 0 on, not {pickle_protocol!r}")
    if is_path:
        f = os.fspath(f)
        f = os.fsdecode(f)
        parent = os.path.dirname(f)
        if parent and not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
    if not _use_new_zipfile_serialization:
        from rushlight import _legacy_files

        _legacy_files.save(obj, f, pickle_module, pickle_protocol)
        return
    saved = Saved()
    objects = pickled(obj, saved, pickle_module, max(pickle_protocol, 2))
    archive = os.path.splitext(os.path.basename(f))[0] if is_path else "archive"
    writer = _C._CheckpointWriter(f if is_path else f.write, archive or "archive")
    writer.add_objects(objects)
    for key, item in enumerate(saved.items):
        writer.add_storage(str(key), _bytes_of_zeros(item) if _skips() else item)
    writer.finish()
    if not is_path and hasattr(f, "flush"):
        f.flush()


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads what `save`, or PyTorch's `save`, has written.

    Args:
        f: a path, or an object with a `read` method.
        map_location: where storages go: a device, its name, a dict from saved names to wanted
            ones, or a function of a storage and its saved name. By default where they were.
        pickle_module: what unpickles, with `weights_only=False`.
        weights_only: read the file as data: tensors, numbers, strings, containers, and what
            `add_safe_globals` allows. With False, a file can run any code.
        mmap: map the file instead of reading it: tensors are read when they are used.

    Raises:
        pickle.UnpicklingError: if a file holds more than data.
        RuntimeError: if it is damaged, or its devices are not here.
        FileNotFoundError: if there is none.
    """
    weights_only = weights_only is None or bool(weights_only)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    is_path = isinstance(f, str | os.PathLike)
    if mmap and not is_path:
        raise ValueError("f must be a string filename in order to use mmap argument")
    if not is_path and not hasattr(f, "read"):
        raise AttributeError(
            f"'{type(f).__name__}' object has no attribute 'read': torch.load takes a path or a "
            "file that is open, like io.BytesIO"
        )
    encoding = pickle_load_args.setdefault("encoding", "utf-8")
    if is_path:
        source = os.fsdecode(os.fspath(f))
        with open(source, "rb") as stream:
            start = stream.read(4)
    else:
        source = f.read()
        if isinstance(source, str):
            raise TypeError(
                "torch.load reads files that are open in binary mode, this one gives text"
            )
        start = bytes(source[:4])
    module = pickle if pickle_module is None else pickle_module
    if start != b"PK\x03\x04":
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with `_use_new_zipfile_serialization=True`"
            )
        from rushlight import _legacy_files

        data: Any = source
        if is_path:
            with open(source, "rb") as stream:
                data = stream.read()
        return _legacy_files.load(data, map_location, module, weights_only, pickle_load_args)
    reader = _C._CheckpointReader(source, bool(mmap))
    if reader.has_record("constants.pkl"):
        raise RuntimeError(
            "this is a TorchScript archive (from torch.jit.save): torch.load cannot load it"
        )
    storages = Storages(_undefined if _skips() else reader.storage, map_location)
    objects = reader.record("data.pkl")
    if weights_only:
        return SafeObjects(storages.load, encoding).read(objects)[0]
    unpickler = unsafe_unpickler(module, storages.load)
    return unpickler(io.BytesIO(objects), **pickle_load_args).load()
