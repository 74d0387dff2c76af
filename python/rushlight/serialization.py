"""`save` and `load`: PyTorch's .pt files.

A file is a zip archive: a pickle whose tensors name their storages, and the storages. By default a
file is read as data (`weights_only=True`, see `_files/safe_load.py`). Files carry PyTorch's names
(`torch._utils._rebuild_tensor_v2`), so that PyTorch reads them too.
"""

from __future__ import annotations

import contextlib
import enum
import io
import mmap as _mmap
import os
import pickle
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from rushlight import _C
from rushlight._files.locations import (
    _package_registry,  # noqa: F401
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from rushlight._files.locations import locator as _get_restore_location  # noqa: F401
from rushlight._files.pickled import StorageKeys, Storages, pickle_bytes, unsafe_unpickler
from rushlight._files.records import (  # noqa: F401
    _check_seekable,
    _is_compressed_file,
    _is_path,
    _is_torchscript_zip,
    _legacy_load,
    _legacy_save,
    _load,
    _maybe_decode_ascii,
    _save,
    _should_read_directly,
)
from rushlight._files.safe_load import (
    SafeObjects,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    globals_named,
    is_safe_global,
    safe_globals,
)
from rushlight._raised import SourceChangeWarning, add_note
from rushlight._warnings import warn
from rushlight.storage import TypedStorage, UntypedStorage
from rushlight.utils.serialization import config

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

DEFAULT_PROTOCOL = 2
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | _C.device | str | dict[str, str] | None
StorageType: TypeAlias = TypedStorage | UntypedStorage
MAP_PRIVATE, MAP_SHARED = _mmap.MAP_PRIVATE, _mmap.MAP_SHARED


# ---- settings: those of rushlight.utils.serialization.config, under older names ----


class LoadEndianness(enum.Enum):
    """The byte order of files that do not state theirs.

    Example:
        >>> torch.serialization.LoadEndianness.LITTLE
        <LoadEndianness.LITTLE: 2>
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The setting of `set_default_load_endianness`; None means little endian.

    Example:
        >>> torch.serialization.get_default_load_endianness()
    """
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order that `load` assumes for files that do not state theirs.

    Args:
        endianness: a member of `LoadEndianness`; None means little endian.

    Example:
        >>> torch.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def _is_big_endian() -> bool:
    if config.load.endianness is LoadEndianness.NATIVE:
        return sys.byteorder == "big"
    return config.load.endianness is LoadEndianness.BIG


def get_default_mmap_options() -> int:
    """How `load(mmap=True)` maps a file: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`.

    Example:
        >>> import mmap
        >>> torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
        True
    """
    return config.load.mmap_flags


class set_default_mmap_options:
    """Set how `load(mmap=True)` maps files; as a context manager, until the block ends.

    Args:
        flags: `mmap.MAP_PRIVATE`: writes stay in memory; `mmap.MAP_SHARED`: they go to the file.

    Example:
        >>> import mmap
        >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     pass  # torch.load(path, mmap=True)
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "set_default_mmap_options: expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
                f"{flags}"
            )
        self._before = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        config.load.mmap_flags = self._before


def get_crc32_options() -> bool:
    """The setting of `set_crc32_options`; checksums are always written.

    Example:
        >>> torch.serialization.get_crc32_options()
        True
    """
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """A no-op: files always have right checksums.

    Args:
        compute_crc32: what `get_crc32_options` returns.

    Example:
        >>> torch.serialization.set_crc32_options(True)
    """
    config.save.compute_crc32 = compute_crc32


_skipping = threading.local()


class skip_data:
    """A context manager: `save` writes zeros instead of elements, and `load` leaves elements
    undefined.

    Sizes and places in the file are those of a whole one, which other means may fill or read.

    Args:
        materialize_fake_tensors: whether fake tensors are written as others, of zeros.

    Example:
        >>> import io
        >>> full, empty = io.BytesIO(), io.BytesIO()
        >>> torch.save(torch.ones(3), full)
        >>> with torch.serialization.skip_data():
        ...     torch.save(torch.ones(3), empty)
        >>> len(full.getvalue()) == len(empty.getvalue()), full.getvalue() == empty.getvalue()
        (True, False)
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError("skip_data(materialize_fake_tensors=True) is not supported")

    def __enter__(self):
        _skipping.depth = getattr(_skipping, "depth", 0) + 1

    def __exit__(self, kind, error, trace):
        _skipping.depth -= 1


def _skips() -> bool:
    return getattr(_skipping, "depth", 0) > 0


def _bytes_of_zeros(item: UntypedStorage) -> UntypedStorage:
    return _C.ops.zeros(item.nbytes(), dtype=_C.uint8).untyped_storage()


def _empty_storage(key, dtype, numel):
    """A storage in the place of one of a file."""
    return _C.ops.empty(numel * dtype.itemsize, dtype=_C.uint8).untyped_storage()


# ---- saving and loading ----


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save an object with all its tensors; tensors that share memory also share it in the file.

    A file at a path is replaced in one step: if saving fails, the old one stays as it was.

    Args:
        obj: anything that can be pickled.
        f: a path, or an object with a `write` method.
        pickle_module: what pickles everything but tensors.
        pickle_protocol: protocols above 3 are written as 3.

    Raises:
        RuntimeError: if the folder does not exist.
        OSError: if the file cannot be written.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.tensor([1, 2])}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'weight': tensor([1, 2])}
    """
    is_path = isinstance(f, str | os.PathLike)
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be a path or a file that has a method 'write', but got "
            f"{type(f).__name__}"
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
        from rushlight._files import legacy as _legacy_files

        _legacy_files.save(obj, f, pickle_module, pickle_protocol)
        return
    saved = StorageKeys()
    objects = pickle_bytes(obj, saved, pickle_module, max(pickle_protocol, 2))
    archive = os.path.splitext(os.path.basename(f))[0] if is_path else "archive"
    writer = _C._CheckpointWriter(f if is_path else f.write, archive or "archive")
    writer.add_objects(objects)
    for key, item in enumerate(saved.items):
        if _skips():
            writer.add_storage(str(key), _bytes_of_zeros(item), False)
        else:
            writer.add_storage(str(key), item)
    writer.finish()
    if not is_path and hasattr(f, "flush"):
        f.flush()


_YES = {"1", "y", "yes", "true"}


def _reads_data_alone(asked: bool | None, pickle_module: Any) -> bool:
    """What `weights_only` of `load` comes to.

    `TORCH_FORCE_WEIGHTS_ONLY_LOAD=1` overrides whatever a program asks for,
    `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1` only what it leaves open, with a warning; so does a
    `pickle_module`. Otherwise files are read as data.
    """
    always = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0") in _YES
    unless_asked = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0") in _YES
    if always and unless_asked:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "may be set in the environment, but both are"
        )
    if always or asked is not None:
        return always or bool(asked)
    if unless_asked:
        warn(
            "load: weights_only is False, as TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD in the environment "
            "says: the file can run any code"
        )
    return not unless_asked and pickle_module is None


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load a file that `save`, or PyTorch's `save`, has written.

    Args:
        f: a path, or an object with a `read` method.
        map_location: where storages go: a device, its name, a dict from saved names to wanted
            ones, or a function of a storage and its saved name. By default where they were.
        pickle_module: what unpickles, with `weights_only=False`.
        weights_only: read the file as data: tensors, numbers, strings, containers, and what
            `add_safe_globals` allows. With False, a file can run any code. By default True,
            unless a `pickle_module` is given; two variables of the environment
            (`TORCH_FORCE_WEIGHTS_ONLY_LOAD`, `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`) change it.
        mmap: map the file instead of reading it: tensors are read when they are used.
        pickle_load_args: passed on to the unpickler.

    Errors name the file, and say what it is where it is none of `save`.

    Raises:
        pickle.UnpicklingError: if a file holds more than data.
        RuntimeError: if it is damaged, or its devices are not here.
        EOFError: if it is empty.
        FileNotFoundError: if there is none.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save(torch.nn.Linear(2, 1).state_dict(), file)
        >>> _ = file.seek(0)
        >>> list(torch.load(file, map_location="cpu"))
        ['weight', 'bias']
    """
    weights_only = _reads_data_alone(weights_only, pickle_module)
    mmap = config.load.mmap if mmap is None else mmap
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "Can not safely load weights when explicit pickle_module and weights_only=True are "
            "given"
        )
    is_path = isinstance(f, str | os.PathLike)
    if mmap and not is_path:
        raise ValueError("f must be a string filename in order to use mmap argument")
    if not is_path and not hasattr(f, "read"):
        raise AttributeError(
            f"'{type(f).__name__}' object has no attribute 'read': torch.load takes a path or a "
            "file that is open, like io.BytesIO"
        )
    pickle_load_args.setdefault("encoding", "utf-8")
    if pickle_module in (None, pickle):
        pickle.Unpickler(io.BytesIO(), **pickle_load_args)  # TypeError for what it does not take
    if is_path and _is_pipe(f):
        if mmap:
            raise ValueError(f"load: {f} is a pipe, which cannot be mapped (mmap=True)")
        with open(f, "rb") as stream:  # once: what was read is gone
            f, is_path = io.BytesIO(stream.read()), False
    if is_path:
        source = os.fsdecode(os.fspath(f))
        with open(source, "rb") as stream:
            start = stream.read(4)
    else:
        begin = f.tell() if hasattr(f, "tell") and hasattr(f, "seek") else None
        source = _rest_of(f)
        start = bytes(source[:4])
    module = pickle if pickle_module is None else pickle_module
    with _naming_file(f, source):
        if start == b"PK\x03\x04":
            return _load_zip(source, map_location, module, weights_only, mmap, pickle_load_args)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with `_use_new_zipfile_serialization=True`"
            )
        from rushlight._files import legacy as _legacy_files

        data: Any = source
        if is_path:
            with open(source, "rb") as stream:
                data = stream.read()
        loaded, used = _legacy_files.load(
            data, map_location, module, weights_only, pickle_load_args
        )
        if not is_path and begin is not None:
            f.seek(begin + used)  # another one may follow
        return loaded


def _is_pipe(path: Any) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISFIFO(os.stat(path).st_mode)
    return False


@contextlib.contextmanager
def _naming_file(f: Any, source: Any) -> Iterator[None]:
    """Errors within say of which file they are, and what it is where that is no checkpoint."""
    try:
        yield
    except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        from rushlight._files.kinds import message_with_file

        if error.args and isinstance(error.args[0], str):
            error.args = (message_with_file(error.args[0], f, source), *error.args[1:])
        raise
    except Exception as error:  # usually of a program's class
        from rushlight._files.kinds import name_of

        add_note(error, f"while torch.load read {name_of(f) or type(f).__name__!r}")
        raise


def _load_zip(
    source: Any,
    map_location: Any,
    module: Any,
    weights_only: bool,
    mmap: bool | None,
    pickle_load_args: dict[str, Any],
) -> Any:
    """What `save` has written to the path or the bytes `source`."""
    shared = config.load.mmap_flags == MAP_SHARED
    reader = _C._CheckpointReader(source, bool(mmap), shared, _is_big_endian())
    if reader.has_record("constants.pkl"):
        raise RuntimeError(
            "this is a TorchScript archive (from torch.jit.save): torch.load cannot load it"
        )
    storages = Storages(_empty_storage if _skips() else reader.storage, map_location)
    objects = reader.record("data.pkl")
    if weights_only:
        return SafeObjects(storages.load, pickle_load_args["encoding"]).read(objects)[0]
    unpickler = unsafe_unpickler(module, storages.load)
    return unpickler(io.BytesIO(objects), **pickle_load_args).load()


def _rest_of(f: Any) -> Any:
    """What follows in a file that is open for reading."""
    if all(hasattr(f, name) for name in ("readinto", "seek", "tell")):
        begin = f.tell()
        end = f.seek(0, os.SEEK_END)
        f.seek(begin)
        data = memoryview(bytearray(max((end if end is not None else f.tell()) - begin, 0)))
        at = 0
        while at < len(data):
            count = f.readinto(data[at:])
            if not count:
                break
            at += count
        return data[:at].obj if at == len(data) else bytes(data[:at])
    data = f.read()
    if isinstance(data, str):
        raise TypeError("torch.load reads files that are open in binary mode, this one gives text")
    return data


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names of functions and classes in a file that `load` would refuse.

    Args:
        f: a path, or a file that is open for reading.

    Raises:
        ValueError: if it is a file in the old format, or of a program.

    Example:
        >>> import datetime, io
        >>> file = io.BytesIO()
        >>> torch.save(datetime.date(2031, 5, 4), file)
        >>> _ = file.seek(0)
        >>> torch.serialization.get_unsafe_globals_in_checkpoint(file)
        ['datetime.date']
    """
    with _open_file_like(f, "rb") as stream:
        if not _is_zipfile(stream):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = _C._CheckpointReader(_rest_of(stream), False)
    if reader.has_record("constants.pkl"):
        raise ValueError(
            "expected a checkpoint returned by torch.save, but this is a program of torchscript: "
            "jit.load reads those"
        )
    named = globals_named(reader.record("data.pkl"))
    return [name for name in named if not is_safe_global(name)]


# ---- what else programs reach for ----


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A temporary folder that is removed at the end of the `with` block.

    Example:
        >>> import os
        >>> with torch.serialization.mkdtemp() as folder:
        ...     print(os.path.isdir(folder))
        True
        >>> os.path.exists(folder)
        False
    """
    import tempfile

    with tempfile.TemporaryDirectory() as path:
        yield path


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether the version of a module is at least this one.

    Args:
        module: a module that has a `__version__`.
        req_version_tuple: the numbers of the version.
        error_if_malformed: raise where its version is no such numbers; otherwise it counts as new.

    Raises:
        RuntimeError: its version is no numbers.

    Example:
        >>> import numpy
        >>> torch.serialization.check_module_version_greater_or_equal(numpy, (1, 0))
        True
    """
    try:
        parts = module.__version__.split(".")
        have = tuple(type(want)(part) for want, part in zip(req_version_tuple, parts, strict=False))
    except Exception as error:
        message = f"'{module.__name__}' module version string is malformed '{module.__version__}'"
        if error_if_malformed:
            raise RuntimeError(message) from error
        return True
    return have >= req_version_tuple


def normalize_storage_type(storage_type: Any) -> type:
    """The class of CPU storages with the same name as another storage class.

    Args:
        storage_type: a class of storages.

    Example:
        >>> torch.serialization.normalize_storage_type(torch.FloatStorage)
        <class 'rushlight.FloatStorage'>
    """
    import rushlight

    return getattr(rushlight, storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> type:
    """The class of tensors on such a storage.

    Args:
        storage: a storage with a dtype.

    Example:
        >>> torch.serialization.storage_to_tensor_type(torch.FloatStorage(2))
        <class 'torch.FloatTensor'>
    """
    import rushlight

    return getattr(rushlight, storage.type().rpartition(".")[2].replace("Storage", "Tensor"))


def _is_zipfile(f: Any) -> bool:
    """Whether what follows in an open file begins as the archives of `save` do."""
    begin = f.tell()
    start = f.read(4)
    f.seek(begin)
    return bytes(start) == b"PK\x03\x04"


@contextlib.contextmanager
def _open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """A path opened, or an open file, which stays open."""
    if isinstance(name_or_buffer, str | os.PathLike):
        with open(name_or_buffer, mode) as stream:
            yield stream
    else:
        wanted = "write" if "w" in mode else "read"
        if not hasattr(name_or_buffer, wanted):
            raise AttributeError(
                f"expected a path or a file-like object with a '{wanted}' attribute"
            )
        yield name_or_buffer
        if wanted == "write" and hasattr(name_or_buffer, "flush"):
            name_or_buffer.flush()


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[Any]:
    """The records of a file."""
    yield _C.PyTorchFileReader(name_or_buffer)


@contextlib.contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[Any]:
    """Takes records into a file, which is ended behind the `with` statement."""
    writer = _C.PyTorchFileWriter(name_or_buffer)
    yield writer
    writer.write_end_of_file()
