"""What `save` and `load` do between a file and an object, for programs that open files themselves.

The names are PyTorch's, which programs reach under `torch.serialization`.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C
from rushlight._files.pickled import StorageKeys, Storages, pickle_bytes, unsafe_unpickler

if TYPE_CHECKING:
    from rushlight.storage import UntypedStorage

__all__ = [
    "_check_seekable",
    "_is_compressed_file",
    "_is_path",
    "_is_torchscript_zip",
    "_legacy_load",
    "_legacy_save",
    "_load",
    "_maybe_decode_ascii",
    "_save",
    "_should_read_directly",
]


def _save(
    obj: Any,
    zip_file: Any,
    pickle_module: Any,
    pickle_protocol: int,
    _disable_byteorder_record: bool,
) -> None:
    """Writes an object into an open archive, which the caller ends.

    Args:
        obj: anything that can be pickled.
        zip_file: a `PyTorchFileWriter`.
        pickle_module: what pickles everything but tensors.
        pickle_protocol: protocols above 3 are written as 3.
        _disable_byteorder_record: must be false: files always say their order of bytes.
    """
    if _disable_byteorder_record:
        raise NotImplementedError("_save(): files always say their order of bytes")
    saved = StorageKeys()
    objects = pickle_bytes(obj, saved, pickle_module, max(pickle_protocol, 2))
    zip_file.write_record("data.pkl", objects, len(objects))
    zip_file.write_record("byteorder", sys.byteorder, len(sys.byteorder))
    for key, item in enumerate(saved.items):
        zip_file.write_record(f"data/{key}", item, item.nbytes())


def _load(
    zip_file: Any,
    map_location: Any,
    pickle_module: Any,
    pickle_file: str = "data.pkl",
    overall_storage: Any = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads an object from an open archive.

    Args:
        zip_file: a `PyTorchFileReader`.
        map_location: see `load`.
        pickle_module: what unpickles: `pickle` runs what the file says,
            `rushlight._files.weights_only` takes data alone.
        pickle_file: the record that is unpickled.
        overall_storage: the whole file as a storage, which tensors then lie in.
        pickle_load_args: for the unpickler.
    """
    order = zip_file.get_record("byteorder") if zip_file.has_record("byteorder") else b""
    if order not in (b"", b"little", b"big"):
        raise ValueError(f"the file says an unknown order of bytes: {order!r}")
    if not order:
        big = rushlight.serialization._is_big_endian()
        order = b"big" if big else b"little"
    swapped = order.decode() != sys.byteorder

    def read(key: str, dtype: rushlight.dtype, numel: int) -> UntypedStorage:
        name, nbytes = f"data/{key}", numel * dtype.itemsize
        if overall_storage is None:
            item = zip_file.get_storage_from_record(name, nbytes, _C.uint8).untyped_storage()
        else:
            begin = zip_file.get_record_offset(name)
            item = overall_storage[begin : begin + nbytes]
        if swapped:
            item.byteswap(dtype)
        return item

    unpickler = unsafe_unpickler(pickle_module, Storages(read, map_location).load)
    pickle_load_args.setdefault("encoding", "utf-8")
    return unpickler(io.BytesIO(zip_file.get_record(pickle_file)), **pickle_load_args).load()


def _legacy_save(obj: Any, f: Any, pickle_module: Any, pickle_protocol: int) -> None:
    """Writes an object into an open file in the format before archives."""
    from rushlight._files import legacy as _legacy_files

    _legacy_files.save(obj, f, pickle_module, pickle_protocol)


def _legacy_load(f: Any, map_location: Any, pickle_module: Any, **pickle_load_args: Any) -> Any:
    """Reads an object from an open file in the format before archives.

    The file stands behind the object then; `pickle_module` is as `_load` has it.
    """
    from rushlight._files import legacy as _legacy_files
    from rushlight._files import weights_only as _weights_only_unpickler

    _check_seekable(f)
    begin = f.tell()
    pickle_load_args.setdefault("encoding", "utf-8")
    safe = pickle_module is _weights_only_unpickler
    loaded, used = _legacy_files.load(f.read(), map_location, pickle_module, safe, pickle_load_args)
    f.seek(begin + used)
    return loaded


# ---- what is asked of files ----


def _is_path(name_or_buffer: object) -> bool:
    """Whether it names a file."""
    return isinstance(name_or_buffer, str | os.PathLike)


def _is_torchscript_zip(zip_file: Any) -> bool:
    """Whether an open archive is a program of `torch.jit.save`."""
    return "constants.pkl" in zip_file.get_all_records()


def _is_compressed_file(f: Any) -> bool:
    """Whether an open file is one of gzip."""
    return getattr(f, "__module__", None) == "gzip"


def _should_read_directly(f: Any) -> bool:
    """Whether an open file is one of the system, as it is read."""
    if _is_compressed_file(f):
        return False
    try:
        return f.fileno() >= 0
    except (AttributeError, io.UnsupportedOperation):
        return False


def _check_seekable(f: Any) -> bool:
    """True.

    Raises:
        AttributeError: it is no file that knows its position.
        io.UnsupportedOperation: it cannot go to one.
    """
    try:
        f.seek(f.tell())
    except (AttributeError, io.UnsupportedOperation) as error:
        raise type(error)(
            f"{error}: torch.load reads files that can seek; one that cannot may be read into an "
            "io.BytesIO first"
        ) from error
    return True


def _maybe_decode_ascii(bytes_str: bytes | str) -> str:
    """Text; bytes as those of ASCII."""
    return bytes_str.decode("ascii") if isinstance(bytes_str, bytes) else bytes_str
