"""Files as PyTorch wrote them before version 1.6: several pickles, then the storages in turn."""

from __future__ import annotations

import io
import pickle
import struct
import sys
from typing import Any

from rushlight import _C, storage
from rushlight._pickled import Saved, Storages, pickled, unsafe_unpickler
from rushlight._safe_load import SafeObjects

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def save(obj: object, f, pickle_module, protocol):
    """Writes `obj` to the path or stream `f`."""
    saved = _LegacySaved()
    objects = pickled(obj, saved, pickle_module, protocol)
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


class _LegacySaved(Saved):
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


def load(data, map_location, pickle_module, weights_only, pickle_load_args):
    """The object in the bytes of a file; see `rushlight.load`."""
    if len(data) == 0:
        raise EOFError("Ran out of input")
    storages = _LegacyStorages(len(data), map_location)
    read: Any
    if weights_only:
        read = SafeObjects(storages.load, pickle_load_args["encoding"]).read
    else:
        unpickler = unsafe_unpickler(pickle_module, storages.load)

        def read_all(view: memoryview) -> tuple[Any, int]:
            stream = io.BytesIO(view)
            return unpickler(stream, **pickle_load_args).load(), stream.tell()

        read = read_all

    parts = _Parts(data, read)
    if parts.next() != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if parts.next() != PROTOCOL_VERSION:
        raise RuntimeError("Invalid protocol version")
    system = parts.next()
    if not isinstance(system, dict) or system.get("little_endian", True) is not True:
        raise RuntimeError("files of big-endian machines in the old format are not supported")
    result = parts.next()
    storages.fill(parts.next(), parts.data)
    return result


class _LegacyStorages:
    """Storages are made when the objects name them, and filled when their bytes come, at the end.

    Args:
        budget: the bytes that all of them may have: those of the file.
        map_location: as `load` has it.
    """

    def __init__(self, budget, map_location) -> None:
        self._budget = budget
        self._storages = Storages(self._make, map_location)
        self._made = {}

    def _make(self, key, dtype, numel):
        if key not in self._made:
            size = numel * dtype.itemsize
            self._budget -= size
            if numel < 0 or self._budget < 0:
                raise RuntimeError(
                    f"storage '{key}' has {numel} elements, more than the file holds"
                )
            self._made[key] = (_C.UntypedStorage(size), dtype)
        return self._made[key][0]

    def load(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 6 or pid[5] is not None:
            raise pickle.UnpicklingError("persistent_load: expected the id of a storage")
        return self._storages.load(pid[:5])

    def fill(self, keys, data):
        """Takes the storages' bytes from `data` in the order of `keys`."""
        named = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
        if not named or set(keys) != set(self._made):
            raise RuntimeError("the list of storages does not match the objects; corrupt file?")
        for key in keys:
            item, dtype = self._made[key]
            size = item.nbytes()
            if len(data) < 8 + size or struct.unpack_from("<q", data)[0] * dtype.itemsize != size:
                raise RuntimeError(f"storage '{key}' has wrong byte size; corrupt file?")
            _C._fill_storage(item, dtype, data[8 : 8 + size])
            placed = self._storages.placed(key)
            if placed != item and placed.device.type != "meta":
                placed.copy_(item)
            data = data[8 + size :]
