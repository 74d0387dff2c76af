"""`save` and `load`: PyTorch's .pt files.

A file is a zip archive: a pickle whose tensors name their storages, and the storages. By default a
file is read as data (`weights_only=True`): the pickle is parsed in C++, and `_SafeObjects` below
decides on every global name in it. To let one more type through, add a row to its tables.
Files carry PyTorch's names (`torch._utils._rebuild_tensor_v2`), so that PyTorch reads them too.
"""

from __future__ import annotations

import io
import os
import pickle
from collections import Counter, OrderedDict


from rushlight import _C, Tensor, _rebuild, _utils, storage
from rushlight.nn.parameter import Parameter

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
    ("rushlight._rebuild\n_rebuild_from_type_v2", "torch._tensor\n_rebuild_from_type_v2"),
    ("rushlight._rebuild", "torch._utils"),
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
            untyped, dtype = obj.untyped, obj.dtype
            kind = storage.OF_DTYPE[dtype]
        elif isinstance(obj, _C.UntypedStorage):
            untyped, dtype, kind = obj, None, _C.UntypedStorage
        else:
            return None
        key, known = self._keys.setdefault(untyped._cdata, (str(len(self._keys)), dtype))
        if known is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        if len(self.items) < len(self._keys):
            self.items.append(untyped)
        numel = untyped.nbytes() // (dtype.itemsize if dtype is not None else 1)
        return ("storage", kind, key, str(untyped.device), numel)


class _PicklerMixin:
    """Turns tensors into what PyTorch calls to rebuild them."""

    def persistent_id(self, obj):
        return self.saved.persistent_id(obj)

    def reducer_override(self, obj):
        kind = type(obj)
        if kind is Tensor and not obj.__dict__:
            return _reduce_tensor(obj)
        if isinstance(obj, Tensor) and kind.__reduce_ex__ is Tensor.__reduce_ex__:
            function, parts = _reduce_tensor(obj)
            return _rebuild._rebuild_from_type_v2, (function, kind, parts, obj.__dict__)
        if kind is _C.layout:
            return _get_layout, (str(obj),)
        other = getattr(super(), "reducer_override", None)
        return NotImplemented if other is None else other(obj)


def _reduce_tensor(t):
    if t.device.type == "meta":
        parts = (t.dtype, tuple(t.size()), tuple(t.stride()), t.requires_grad)
        return _rebuild._rebuild_meta_tensor_no_storage, parts
    typed = storage.TypedStorage(t.untyped_storage(), t.dtype)
    place = (t.storage_offset(), tuple(t.size()), tuple(t.stride()))
    # Hooks are not saved; their place is part of the format.
    return _rebuild._rebuild_tensor_v2, (typed, *place, t.requires_grad, OrderedDict())


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
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(f"don't know how to restore data location of a storage (tagged with {location})")


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
        return storage.TypedStorage(item, dtype) if typed else item


# ---- what is loaded as data ----

_safe_globals = {}


def _global_name(item):
    if isinstance(item, tuple):
        return item
    if not hasattr(item, "__qualname__"):
        raise TypeError(f"safe globals are functions and classes, not {item!r}")
    return item, _torch_name(f"{item.__module__}.{item.__qualname__}")


def _torch_name(name):
    """The name that a global of this package has in files."""
    if name == "rushlight" or name.startswith("rushlight."):
        return "torch" + name[len("rushlight") :]
    return name


def add_safe_globals(safe_globals):
    """Functions and classes that `load` may call when a file asks for it, from now on.

    Each is the function or class, or a pair of it and its full name in files.
    """
    _safe_globals.update({name: item for item, name in map(_global_name, safe_globals)})


def get_safe_globals():
    """What `add_safe_globals` has added."""
    return list(_safe_globals.values())


def clear_safe_globals():
    """Forgets what `add_safe_globals` has added."""
    _safe_globals.clear()


class safe_globals:
    """`add_safe_globals` for the duration of a `with` block."""

    def __init__(self, safe_globals):
        self._added = safe_globals

    def __enter__(self):
        self._before = dict(_safe_globals)
        add_safe_globals(self._added)
        return self

    def __exit__(self, *exception):
        _safe_globals.clear()
        _safe_globals.update(self._before)


def _get_layout(name):
    if name != "torch.strided":
        raise RuntimeError(f"layout {name} is not supported")
    return _C.strided


def _make_bytes(text, encoding):
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"_codecs.encode with the encoding {encoding!r} is not allowed")
    return text.encode("latin1")


def _make_bytearray(data=b"", encoding="latin1"):
    return bytearray(_make_bytes(data, encoding) if isinstance(data, str) else bytes(memoryview(data)))


def _make_complex(real, imag):
    return complex(float(real), float(imag))


def _make_set(items=()):
    return set(items) if isinstance(items, list | tuple) else set(list(items))


def _make_size(items=()):
    return _C.Size(tuple(items))


class _SafeObjects:
    """Decides what the globals of a pickle are, and carries out the calls that are known to be harmless.

    Args:
        load_storage: makes a persistent id into a storage.
        encoding: of strings that Python 2 wrote.
    """

    # What a global name stands for.
    names = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "builtins.set": set,
        "builtins.complex": complex,
        "builtins.bytearray": bytearray,
        "_codecs.encode": _make_bytes,
        "torch.Size": _C.Size,
        "torch.device": _C.device,
        "torch.Tensor": Tensor,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.storage.UntypedStorage": _C.UntypedStorage,
        "torch.UntypedStorage": _C.UntypedStorage,
        "torch.serialization._get_layout": _get_layout,
        "torch.strided": _C.strided,
        "torch._utils._rebuild_tensor": _rebuild._rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": _rebuild._rebuild_tensor_v2,
        "torch._utils._rebuild_tensor_v3": _rebuild._rebuild_tensor_v3,
        "torch._utils._rebuild_parameter": _utils._rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": _utils._rebuild_parameter_with_state,
        "torch._utils._rebuild_meta_tensor_no_storage": _rebuild._rebuild_meta_tensor_no_storage,
        "torch._tensor._rebuild_from_type_v2": _rebuild._rebuild_from_type_v2,
        **{f"torch.{name}": kind for name, kind in storage.NAMES.items()},
        **{str(dtype): dtype for dtype in storage.OF_DTYPE},
    }
    # What is called for one of them that may be called at all.
    calls = {
        OrderedDict: OrderedDict,
        Counter: Counter,
        set: _make_set,
        complex: _make_complex,
        bytearray: _make_bytearray,
        _make_bytes: _make_bytes,
        _C.Size: _make_size,
        _C.device: _C.device,
        _get_layout: _get_layout,
        **{function: function for name, function in names.items() if name.startswith("torch._utils.")},
    }

    def __init__(self, load_storage, encoding):
        self.load_storage = load_storage
        self.encoding = encoding

    def find(self, module, name):
        if module == "__builtin__":  # as protocol 2 calls it
            module = "builtins"
        full = _torch_name(f"{module}.{name}")
        if full in _safe_globals:
            return _safe_globals[full]
        if full in self.names:
            return self.names[full]
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{full}])` or the "
            f"`torch.serialization.safe_globals([{full}])` context manager to allowlist this global if you "
            "trust this class/function."
        )

    def call(self, function, arguments, new):
        for item in _safe_globals.values():
            if item is function:
                return function.__new__(function, *arguments) if new else function(*arguments)
        if function is _rebuild._rebuild_from_type_v2:
            return self._rebuild_from_type(*arguments)
        known = self.calls.get(function) if function.__hash__ is not None else None
        if known is None:
            name = getattr(function, "__name__", type(function).__name__)
            raise pickle.UnpicklingError(f"Trying to call {name}, which is not allowed in a file of plain data")
        return known(*arguments)

    def _rebuild_from_type(self, function, kind, arguments, state):
        if kind not in (Tensor, Parameter) and not any(kind is item for item in _safe_globals.values()):
            raise pickle.UnpicklingError(f"tensors of the type {kind!r} are not allowed by default")
        result = self.call(function, arguments, False)
        return _rebuild._rebuild_from_type_v2(lambda: result, kind, (), state)

    def persistent(self, pid):
        return self.load_storage(pid)

    def build(self, obj, state):
        if any(type(obj) is item for item in _safe_globals.values()):
            if hasattr(obj, "__setstate__"):
                obj.__setstate__(state)
                return
        elif type(obj) not in (OrderedDict, Counter):
            raise pickle.UnpicklingError(
                f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {type(obj).__name__}"
            )
        if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
            raise pickle.UnpicklingError(f"the state of a {type(obj).__name__} is no dict of attributes")
        obj.__dict__.update(state)

    def old_string(self, data):
        return data if self.encoding == "bytes" else data.decode(self.encoding)

    def read(self, data):
        """The object that a pickle stands for, and how many bytes of `data` the pickle has."""
        try:
            return _C._unpickle(data, self.find, self.call, self.persistent, self.build, self.old_string)
        except (pickle.UnpicklingError, TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise pickle.UnpicklingError(_refusal(error)) from error


def _refusal(error):
    return (
        "Weights only load failed. The file holds more than plain data, or is damaged; to load it nevertheless "
        "there are two ways, only for files from a source that you trust:\n"
        "\t(1) Re-running `torch.load` with `weights_only` set to `False` runs what the file says, which can be "
        "any code.\n"
        "\t(2) `torch.serialization.add_safe_globals` allows single functions and classes.\n"
        f"\tWeightsUnpickler error: {error}"
    )


# ---- loading ----


def _unsafe_unpickler(pickle_module, load_storage):
    """An Unpickler class that knows this package under PyTorch's names. It runs what the pickle says."""

    class Unpickler(pickle_module.Unpickler):
        def persistent_load(self, pid):
            return load_storage(pid)

        def find_class(self, module, name):
            if module == "torch" or module.startswith("torch."):
                full = f"{module}.{name}"
                if full in _SafeObjects.names:
                    return _SafeObjects.names[full]
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
        map_location: where storages go: a device, its name, a dict from saved names to wanted ones, or a function
            of a storage and its saved name. By default where they were.
        pickle_module: what unpickles, with `weights_only=False`.
        weights_only: read the file as data: tensors, numbers, strings, containers, and what `add_safe_globals` allows.
            With False, a file can run any code.
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
            f"'{type(f).__name__}' object has no attribute 'read'. You can only torch.load from a file that is "
            "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    encoding = pickle_load_args.setdefault("encoding", "utf-8")
    if is_path:
        source = os.fsdecode(os.fspath(f))
        with open(source, "rb") as stream:
            start = stream.read(4)
    else:
        source = f.read()
        if isinstance(source, str):
            raise TypeError("torch.load reads files that are open in binary mode, this one gives text")
        start = bytes(source[:4])
    module = pickle if pickle_module is None else pickle_module
    if start != b"PK\x03\x04":
        if mmap:
            raise RuntimeError("mmap can only be used with files saved with `_use_new_zipfile_serialization=True`")
        from rushlight import _legacy_files

        data = source
        if is_path:
            with open(source, "rb") as stream:
                data = stream.read()
        return _legacy_files.load(data, map_location, module, weights_only, pickle_load_args)
    reader = _C._CheckpointReader(source, bool(mmap))
    if reader.has_record("constants.pkl"):
        raise RuntimeError("this is a TorchScript archive (from torch.jit.save): torch.load cannot load it")
    storages = _Storages(reader.storage, map_location)
    objects = reader.record("data.pkl")
    if weights_only:
        return _SafeObjects(storages.load, encoding).read(objects)[0]
    unpickler = _unsafe_unpickler(module, storages.load)
    return unpickler(io.BytesIO(objects), **pickle_load_args).load()
