"""Objects with tensors as pickles, storages apart: what both formats of files share."""

from __future__ import annotations

import enum
import io
import pickle
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C, Tensor, _tensor, _utils, storage
from rushlight._files.locations import location_tag, locator
from rushlight._files.safe_load import find_public, get_layout

if TYPE_CHECKING:
    from rushlight.storage import UntypedStorage

# Names in files are PyTorch's. Pickles of later protocols mention names in ways that cannot be
# changed afterwards.
_LAST_PROTOCOL = 3
_RENAMES = (
    *(
        (f"{root}{name}", other)
        for root in ("rushlight", "torch")  # the latter where programs know it as torch
        for name, other in (
            ("\nUntypedStorage", "torch.storage\nUntypedStorage"),
            ("._files.safe_load\nget_layout", "torch.serialization\n_get_layout"),
        )
    ),
    # Python 3.13 keeps these in a module that others do not have.
    *(
        (f"pathlib._local\n{name}", f"pathlib\n{name}")
        for name in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")
    ),
    ("rushlight", "torch"),
)
_ENUMS = (enum.Enum.__reduce_ex__, enum.Flag.__reduce_ex__)


class StorageKeys:
    """Gives storages their keys; `items` are those to be written."""

    def __init__(self) -> None:
        self.items = []
        self._keys = {}

    def persistent_id(self, obj: object) -> tuple[str, type, str, str, int] | None:
        """What stands for a storage in the pickle; None for all else."""
        if isinstance(obj, storage.TypedStorage):
            untyped, dtype = obj.untyped(), obj.dtype
            if dtype not in storage.OF_DTYPE:
                raise KeyError(f"dtype {dtype} is not recognized")
            kind = storage.OF_DTYPE[dtype]
        elif isinstance(obj, storage.UntypedStorage):
            untyped, dtype, kind = obj, None, storage.UntypedStorage
        else:
            return None
        key, known = self._keys.setdefault(untyped._cdata, (str(len(self._keys)), dtype))
        if known is not dtype and untyped.data_ptr() != 0:  # what has no memory may have any
            raise RuntimeError(
                f"one memory is viewed here as {known or 'bytes'} and as {dtype or 'bytes'}; it is "
                "not saved as different types: clone() one of the two"
            )
        if len(self.items) < len(self._keys):
            self.items.append(untyped)
        numel = untyped.nbytes() // (dtype.itemsize if dtype is not None else 1)
        return ("storage", kind, key, location_tag(untyped), numel)


class _PicklerMixin:
    """Turns tensors into what PyTorch calls to rebuild them."""

    saved: StorageKeys

    def persistent_id(self, obj: object):
        return self.saved.persistent_id(obj)

    def reducer_override(self, obj: object):
        kind = type(obj)
        if kind is Tensor and not obj.__dict__:
            return _utils.reduce_tensor(obj)
        if isinstance(obj, Tensor) and kind.__reduce_ex__ is Tensor.__reduce_ex__:
            function, parts = _utils.reduce_tensor(obj)
            state = _utils._get_obj_state(obj)
            return _tensor._rebuild_from_type_v2, (function, kind, parts, state)
        if kind is _C.layout:
            return get_layout, (str(obj),)
        if isinstance(obj, enum.Enum) and kind.__reduce_ex__ in _ENUMS:
            # By value, as Python does but for a few releases (3.11.2): files are all alike.
            return kind, (obj.value,)
        other = getattr(super(), "reducer_override", None)
        return NotImplemented if other is None else other(obj)


def pickle_bytes(obj: object, saved, pickle_module, protocol):
    """The pickle of an object, with PyTorch's names."""
    kind: Any = type("_Pickler", (_PicklerMixin, pickle_module.Pickler), {"saved": saved})
    stream = io.BytesIO()
    kind(stream, protocol=min(protocol, _LAST_PROTOCOL)).dump(obj)
    return _C._rename_globals(stream.getvalue(), _RENAMES)


# ---- and back ----


class Storages:
    """Makes persistent ids into storages; each key is read and placed once.

    Args:
        read: a function of key, dtype and number of elements.
        map_location: see `load`.
    """

    def __init__(self, read, map_location) -> None:
        self._read = read
        self._place = locator(map_location)
        self._known = {}

    def storage_of(self, key: str) -> UntypedStorage:
        """The storage of a key that has been loaded."""
        return self._known[key]

    def load(self, pid):
        if isinstance(pid, tuple):  # texts are bytes where encoding="bytes" reads Python 2's files
            pid = tuple(v.decode("ascii") if isinstance(v, bytes) else v for v in pid)
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("persistent_load: expected the id of a storage")
        kind: Any = pid[1]
        _, _, key, location, numel = pid
        typed = isinstance(kind, type) and issubclass(kind, storage._StorageName)
        dtype = kind.dtype if typed else _C.uint8
        if not typed and kind is not storage.UntypedStorage:
            what = kind.__qualname__ if isinstance(kind, type) else f"a {type(kind).__name__}"
            raise pickle.UnpicklingError(f"persistent_load: {what} is no type of storage")
        if not isinstance(key, str) or not isinstance(location, str) or type(numel) is not int:
            raise pickle.UnpicklingError("persistent_load: the id of a storage is damaged")
        item = self._read(key, storage.CODES.get(dtype, dtype), numel)
        if key not in self._known:
            self._known[key] = self._place(item, location)
        item = self._known[key]
        return storage.TypedStorage._from_untyped(item, dtype) if typed else item


def unsafe_unpickler(pickle_module: Any, load_storage: Callable[..., Any]) -> type:
    """An Unpickler that knows this package under PyTorch's names. It runs what the pickle says."""

    class Unpickler(pickle_module.Unpickler):
        def persistent_load(self, pid):
            return load_storage(pid)

        def find_class(self, module, name):
            if module == "torch" or module.startswith("torch."):
                public = find_public(module, name)
                if public is not None:
                    return public
                try:
                    return super().find_class("rushlight" + module[len("torch") :], name)
                except ModuleNotFoundError:
                    if sys.modules.get("torch") is not rushlight:
                        raise
                    # Under the alias somebody else may have put it there.
            if module == "pathlib._local":  # as Python 3.13 calls it
                module = "pathlib"
            return super().find_class(module, name)

    return Unpickler
