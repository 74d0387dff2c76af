"""Objects with tensors as pickles, storages apart: what both formats of files share."""

from __future__ import annotations

import io
import pickle
from typing import Any

from rushlight import _C, Tensor, _tensor, _utils, storage
from rushlight._safe_load import find_public, get_layout

# Names in files are PyTorch's. Pickles of later protocols mention names in ways that cannot be
# changed afterwards.
_LAST_PROTOCOL = 3
_RENAMES = (
    ("rushlight\nUntypedStorage", "torch.storage\nUntypedStorage"),
    ("rushlight._safe_load\nget_layout", "torch.serialization\n_get_layout"),
    ("rushlight", "torch"),
)


class Saved:
    """Gives storages their keys; `items` are those to be written."""

    def __init__(self) -> None:
        self.items = []
        self._keys = {}

    def persistent_id(self, obj: object):
        """What stands for a storage in the pickle; None for all else."""
        if isinstance(obj, storage.TypedStorage):
            untyped, dtype = obj.untyped(), obj.dtype
            if dtype not in storage.OF_DTYPE:
                raise KeyError(f"dtype {dtype} is not recognized")
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

    saved: Saved

    def persistent_id(self, obj: object):
        return self.saved.persistent_id(obj)

    def reducer_override(self, obj: object):
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


def pickled(obj: object, saved, pickle_module, protocol):
    """The pickle of an object, with PyTorch's names."""
    kind: Any = type("_Pickler", (_PicklerMixin, pickle_module.Pickler), {"saved": saved})
    stream = io.BytesIO()
    kind(stream, protocol=min(protocol, _LAST_PROTOCOL)).dump(obj)
    return _C._rename_globals(stream.getvalue(), _RENAMES)


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


class Storages:
    """Makes persistent ids into storages; each key is read and placed once.

    Args:
        read: a function of key, dtype and number of elements.
        map_location: as `load` has it.
    """

    def __init__(self, read, map_location) -> None:
        self._read = read
        self._place = _locator(map_location)
        self._known = {}

    def placed(self, key):
        """The storage of a key that has been loaded."""
        return self._known[key]

    def load(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("persistent_load: expected the id of a storage")
        kind: Any = pid[1]
        _, _, key, location, numel = pid
        typed = isinstance(kind, type) and issubclass(kind, storage._StorageName)
        dtype = kind.dtype if typed else _C.uint8
        if not typed and kind is not _C.UntypedStorage:
            raise pickle.UnpicklingError(f"persistent_load: {kind!r} is no type of storage")
        if not isinstance(key, str) or not isinstance(location, str) or type(numel) is not int:
            raise pickle.UnpicklingError("persistent_load: the id of a storage is damaged")
        item = self._read(key, dtype, numel)
        if key not in self._known:
            self._known[key] = self._place(item, location)
        item = self._known[key]
        return storage.TypedStorage._over(item, dtype) if typed else item


def unsafe_unpickler(pickle_module: Any, load_storage):
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
