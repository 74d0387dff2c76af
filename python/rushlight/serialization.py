"""`save` and `load`: PyTorch's .pt files.

A file is a zip archive: a pickle whose tensors name their storages, and the storages. By default a
file is read as data (`weights_only=True`, see `_safe_load.py`). Files carry PyTorch's names
(`torch._utils._rebuild_tensor_v2`), so that PyTorch reads them too.
"""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

from rushlight import _C, Tensor, _tensor, _utils, storage
from rushlight._safe_load import (
    SafeObjects,
    add_safe_globals,
    clear_safe_globals,
    find_public,
    get_layout,
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
]

DEFAULT_PROTOCOL = 2
# Names in files are PyTorch's. Pickles of later protocols mention names in ways that cannot be
# changed afterwards.
_LAST_PROTOCOL = 3
_RENAMES = (
    ("rushlight\nUntypedStorage", "torch.storage\nUntypedStorage"),
    ("rushlight._safe_load\nget_layout", "torch.serialization\n_get_layout"),
    ("rushlight", "torch"),
)


# ---- saving ----


class _Saved:
    """Gives storages their keys; `items` are those to be written."""

    def __init__(self):
        self.items = []
        self._keys = {}

    def persistent_id(self, obj):
        """What stands for a storage in the pickle; None for all else."""
        if isinstance(obj, storage.TypedStorage):
            untyped, dtype = obj.untyped(), obj.dtype
            kind = storage.OF_DTYPE[dtype]
        elif isinstance(obj, _C.UntypedStorage):
            untyped, dtype, kind = obj, None, _C.UntypedStorage
        else:
            return None
        key, known = self._keys.setdefault(untyped._cdata, (str(len(self._keys)), dtype))
        if known is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        if len(self.items) < len(self._keys):
            self.items.append(untyped)
        numel = untyped.nbytes() // (dtype.itemsize if dtype is not None else 1)
        return ("storage", kind, key, str(untyped.device), numel)


class _PicklerMixin:
    """Turns tensors into what PyTorch calls to rebuild them."""

    saved: _Saved

    def persistent_id(self, obj):
        return self.saved.persistent_id(obj)

    def reducer_override(self, obj):
        kind = type(obj)
        if kind is Tensor and not obj.__dict__:
            return _utils.reduce_tensor(obj)
        if isinstance(obj, Tensor) and kind.__reduce_ex__ is Tensor.__reduce_ex__:
            function, parts = _utils.reduce_tensor(obj)
            return _tensor._rebuild_from_type_v2, (function, kind, parts, obj.__dict__)
        if kind is _C.layout:
            return get_layout, (str(obj),)
        other = getattr(super(), "reducer_override", None)
        return NotImplemented if other is None else other(obj)


def _pickled(obj, saved, pickle_module, protocol):
    """The pickle of an object, with PyTorch's names."""
    kind = type("_Pickler", (_PicklerMixin, pickle_module.Pickler), {"saved": saved})
    stream = io.BytesIO()
    kind(stream, protocol=min(protocol, _LAST_PROTOCOL)).dump(obj)
    return _C._rename_globals(stream.getvalue(), _RENAMES)


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
):
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
    saved = _Saved()
    objects = _pickled(obj, saved, pickle_module, max(pickle_protocol, 2))
    archive = os.path.splitext(os.path.basename(f))[0] if is_path else "archive"
    writer = _C._CheckpointWriter(f if is_path else f.write, archive or "archive")
    writer.add_objects(objects)
    for key, item in enumerate(saved.items):
        writer.add_storage(str(key), item)
    writer.finish()
    if not is_path and hasattr(f, "flush"):
        f.flush()


# ---- where storages go ----


def _default_location(item, location):
    """A storage that was saved on `location`, on the same device here."""
    kind = location.partition(":")[0]
    if kind == "cpu":
        return item
    if kind == "meta":
        return _C._meta_storage(item.nbytes())
    if kind == "cuda":
        _check_cuda(location)
        return item.to(device=location)
    raise RuntimeError(
        f"don't know how to restore data location of a storage (tagged with {location})"
    )


def _check_cuda(location):
    from rushlight import cuda

    remedy = "Give map_location, for example torch.device('cpu'), to load on what there is."
    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            f"False. {remedy}"
        )
    index = _C.device(location).index or 0
    if index >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but "
            f"torch.cuda.device_count() is {cuda.device_count()}. {remedy}"
        )


def _locator(map_location):
    """`map_location` as a function of a storage and where it was saved."""
    if map_location is None:
        return _default_location
    if isinstance(map_location, dict):
        return lambda item, place: _default_location(item, str(map_location.get(place, place)))
    if isinstance(map_location, str | bytes):
        name = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        return lambda item, place: _default_location(item, name)
    if isinstance(map_location, _C.device):
        return lambda item, place: _default_location(item, str(map_location))
    if not callable(map_location):
        raise TypeError(
            "map_location must be a device, a str, a dict or a function, "
            f"not {type(map_location).__name__}"
        )

    def by_function(item, place):
        moved = map_location(item, place)
        return _default_location(item, place) if moved is None else moved

    return by_function


class _Storages:
    """Makes persistent ids into storages; each key is read and placed once.

    Args:
        read: a function of key, dtype and number of elements.
        map_location: as `load` has it.
    """

    def __init__(self, read, map_location):
        self._read = read
        self._place = _locator(map_location)
        self._known = {}

    def placed(self, key):
        """The storage of a key that has been loaded."""
        return self._known[key]

    def load(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("persistent_load: expected the id of a storage")
        _, kind, key, location, numel = pid
        typed = isinstance(kind, type) and issubclass(kind, storage._StorageName)
        if not typed and kind is not _C.UntypedStorage:
            raise pickle.UnpicklingError(f"persistent_load: {kind!r} is no type of storage")
        if not isinstance(key, str) or not isinstance(location, str) or type(numel) is not int:
            raise pickle.UnpicklingError("persistent_load: the id of a storage is damaged")
        dtype = kind.dtype if typed else _C.uint8
        item = self._read(key, dtype, numel)
        if key not in self._known:
            self._known[key] = self._place(item, location)
        item = self._known[key]
        return storage.TypedStorage._over(item, dtype) if typed else item


# ---- loading ----


def _unsafe_unpickler(pickle_module: Any, load_storage):
    """An Unpickler that knows this package under PyTorch's names. It runs what the pickle says."""

    class Unpickler(pickle_module.Unpickler):
        def persistent_load(self, pid):
            return load_storage(pid)

        def find_class(self, module, name):
            if module == "torch" or module.startswith("torch."):
                public = find_public(module, name)
                if public is not None:
                    return public
                module = "rushlight" + module[len("torch") :]
            return super().find_class(module, name)

    return Unpickler


def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only=True,
    mmap=None,
    **pickle_load_args,
):
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
    storages = _Storages(reader.storage, map_location)
    objects = reader.record("data.pkl")
    if weights_only:
        return SafeObjects(storages.load, encoding).read(objects)[0]
    unpickler = _unsafe_unpickler(module, storages.load)
    return unpickler(io.BytesIO(objects), **pickle_load_args).load()
