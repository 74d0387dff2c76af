"""Files as PyTorch wrote them before version 1.6: several pickles, then the storages in turn."""

from __future__ import annotations

import inspect
import io
import pickle
import struct
import sys
import tarfile
from collections.abc import Callable
from typing import Any

from rushlight import _C, storage
from rushlight._files.locations import locator
from rushlight._files.pickled import StorageKeys, Storages, pickle_bytes, unsafe_unpickler
from rushlight._files.safe_load import SafeObjects
from rushlight._raised import SourceChangeWarning
from rushlight._utils import storages_unfilled
from rushlight._warnings import warn

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def save(obj: object, f, pickle_module, protocol):
    """Writes `obj` to the path or stream `f`."""
    saved = _LegacySaved()
    objects = pickle_bytes(obj, saved, pickle_module, protocol)
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    keys = [str(key) for key in range(len(saved.items))]
    parts = [pickle.dumps(value, protocol=2) for value in (MAGIC_NUMBER, PROTOCOL_VERSION, system)]
    parts += [objects, pickle.dumps(keys, protocol=2)]
    for item, size in zip(saved.items, saved.sizes, strict=True):
        parts += [struct.pack("<q", item.nbytes() // size), _C._storage_bytes(item)]
    data = b"".join(parts)
    if isinstance(f, str):
        _C._replace_file(f, data)
    else:
        f.write(data)


class _LegacySaved(StorageKeys):
    """Ids have one part more, for views, which is never used; sizes are counted in elements."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = []

    def persistent_id(self, obj: object):
        pid = super().persistent_id(obj)
        if pid is None:
            return None
        if len(self.sizes) < len(self.items):
            self.sizes.append(obj.dtype.itemsize if isinstance(obj, storage.TypedStorage) else 1)
        return (*pid, None)


class _Parts:
    """Reads the parts of a file in turn."""

    def __init__(self, data, read) -> None:
        self.data = memoryview(data)
        self.read = read

    def next(self):
        value, size = self.read(self.data)
        self.data = self.data[size:]
        return value

    def bytes(self, size):
        """Bytes that are no pickle."""
        if size < 0 or len(self.data) < size:
            raise RuntimeError("the file ends too early; corrupt file?")
        part, self.data = self.data[:size], self.data[size:]
        return part


def _reader(find_storage, pickle_module, weights_only, pickle_load_args):
    """A function of bytes that begin with a pickle: its object, and how long it is."""
    if weights_only:
        return SafeObjects(find_storage, pickle_load_args["encoding"]).read
    unpickler = unsafe_unpickler(pickle_module, find_storage)

    def read(view: memoryview) -> tuple[Any, int]:
        stream = io.BytesIO(view)
        return unpickler(stream, **pickle_load_args).load(), stream.tell()

    return read


def load(data, map_location, pickle_module, weights_only, pickle_load_args):
    """The object in the bytes of a file, and how many of them it takes; see `rushlight.load`."""
    if len(data) == 0:
        raise EOFError("Ran out of input")
    if bytes(data[257:262]) == b"ustar":
        if weights_only:
            raise RuntimeError(
                "Cannot use `weights_only=True` with a legacy .tar file, which names the functions "
                "that make its tensors. With weights_only=False it can run any code."
            )
        return _load_tar(data, map_location, pickle_module, pickle_load_args), len(data)
    storages = _LegacyStorages(len(data), map_location)
    read = _reader(storages.load, pickle_module, weights_only, pickle_load_args)
    parts = _Parts(data, read)
    if parts.next() != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if parts.next() != PROTOCOL_VERSION:
        raise RuntimeError("Invalid protocol version")
    system = parts.next()
    if not isinstance(system, dict) or system.get("little_endian", True) is not True:
        raise RuntimeError("files of big-endian machines in the old format are not supported")
    objects = parts.data
    with storages_unfilled() as sparse:
        result = parts.next()
    storages.fill(parts)
    if sparse:
        result, _ = read(objects)
    return result, len(data) - len(parts.data)


def _module_class(parts):
    """The class of a module that a file holds whole; warns where its source code has changed."""
    cls, file, source = parts
    if file and source:
        try:
            current = inspect.getsource(cls)
        except (OSError, TypeError):
            warn(
                f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be "
                "checked for correctness upon loading.",
            )
            return cls
        if current != source:
            warn(
                f"source code of class '{cls.__name__}' has changed. The file was saved with "
                f"another one, from {file}.",
                SourceChangeWarning,
            )
    return cls


class _LegacyStorages:
    """Storages are made when the objects name them, and filled when their bytes come, at the end.

    Args:
        budget: the bytes that all of them may have: those of the file.
        map_location: see `load`.
    """

    def __init__(self, budget: int, map_location: str | Callable[..., Any] | None) -> None:
        self._budget = budget
        self._storages = Storages(self._make, map_location)
        self._made = {}
        self._views = {}

    def _make(self, key, dtype, numel):
        if key not in self._made:
            size = numel * dtype.itemsize
            self._budget -= size
            if numel < 0 or self._budget < 0:
                raise RuntimeError(
                    f"storage '{key}' has {numel} elements, more than the file holds"
                )
            self._made[key] = (storage.UntypedStorage(size), dtype)
        return self._made[key][0]

    def load(self, pid):
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return _module_class(pid[1:])
        if not isinstance(pid, tuple) or len(pid) != 6:
            raise pickle.UnpicklingError("persistent_load: expected the id of a storage")
        whole = self._storages.load(pid[:5])
        view = pid[5]
        if view is None:
            return whole
        # Files from before PyTorch 0.4 have storages that are parts of others.
        if not isinstance(view, tuple) or len(view) != 3:
            raise pickle.UnpicklingError("persistent_load: expected the part of a storage")
        key, offset, size = view
        if key not in self._views:
            self._views[key] = part_of(whole, offset, size)
        return self._views[key]

    def fill(self, parts: _Parts) -> None:
        """Takes the storages' bytes: their keys in order, then the bytes of each."""
        keys = parts.next()
        if isinstance(keys, list):
            keys = [k.decode("ascii") if isinstance(k, bytes) else k for k in keys]
        named = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
        if not named or set(keys) != set(self._made):
            raise RuntimeError("the list of storages does not match the objects; corrupt file?")
        for key in keys:
            item, dtype = self._made[key]
            size = item.nbytes()
            if struct.unpack("<q", parts.bytes(8))[0] * dtype.itemsize != size:
                raise RuntimeError(f"storage '{key}' has wrong byte size; corrupt file?")
            _C._fill_storage(item, parts.bytes(size))
            placed = self._storages.storage_of(key)
            if placed != item and placed.device.type != "meta":
                placed.copy_(item)


def part_of(whole, offset, size):
    """The `size` elements of a typed storage from `offset` on, in the same memory."""
    if not isinstance(whole, storage.TypedStorage):
        raise pickle.UnpicklingError("persistent_load: only typed storages have parts")
    if not (type(offset) is int and type(size) is int and 0 <= offset <= offset + size):
        raise pickle.UnpicklingError("persistent_load: the part of a storage is damaged")
    if offset + size > whole.size():
        raise RuntimeError("the part of a storage ends behind it; corrupt file?")
    item = whole.dtype.itemsize
    return storage.TypedStorage._from_untyped(
        whole.untyped()[offset * item : (offset + size) * item], whole.dtype
    )


def _load_tar(data, map_location, pickle_module, pickle_load_args):
    """Files of the first versions: a tar archive of storages, tensors and a pickle."""
    found = {}

    def load_reference(pid):
        if isinstance(pid, tuple):
            return _module_class(pid)
        return found[int(pid)]

    read = _reader(load_reference, pickle_module, False, pickle_load_args)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", format=tarfile.PAX_FORMAT) as tar:
        texts = {}
        for name in ("storages", "tensors", "pickle"):
            member = tar.extractfile(name)
            if member is None:
                raise RuntimeError(f"the archive has no file {name}; corrupt file?")
            texts[name] = _Parts(member.read(), read)
    place = locator(map_location)
    parts = texts["storages"]
    for _ in range(parts.next()):
        key, location, kind = parts.next()
        if not (isinstance(kind, type) and issubclass(kind, storage._StorageName)):
            raise pickle.UnpicklingError(f"{kind!r} is no type of storage")
        (numel,) = struct.unpack("<q", parts.bytes(8))
        content = parts.bytes(numel * kind.dtype.itemsize)
        item = storage.UntypedStorage(len(content))
        _C._fill_storage(item, content)
        found[key] = storage.TypedStorage._from_untyped(place(item, location), kind.dtype)
    for key, root, offset, size in parts.next():
        found[key] = part_of(found[root], offset, size)
    parts = texts["tensors"]
    for _ in range(parts.next()):
        key, storage_key, _kind = parts.next()
        (dims,) = struct.unpack("<i4x", parts.bytes(8))
        size = struct.unpack(f"<{dims}q", parts.bytes(8 * dims))
        stride = struct.unpack(f"<{dims}q", parts.bytes(8 * dims))
        (offset,) = struct.unpack("<q", parts.bytes(8))
        item = found[storage_key]
        found[key] = _C._tensor_on(item.untyped(), item.dtype, offset, size, stride)
    return texts["pickle"].next()
