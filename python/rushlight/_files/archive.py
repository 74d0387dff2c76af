"""Files of `save` record by record: `PyTorchFileReader`, `PyTorchFileWriter`."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import zipfile
import zlib
from typing import Any

import rushlight
from rushlight import _C, Tensor

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]


# What a compressed record may stand for, as src/serialize/zip.cpp has it.
_INFLATED_ANYWAY, _MOST_TIMES = 1 << 18, 64


class PyTorchFileReader:
    """The records of a file that `save` wrote.

    Args:
        file: a path or a file that is open for reading.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save(torch.ones(2), file)
        >>> _ = file.seek(0)
        >>> torch.PyTorchFileReader(file).has_record("data.pkl")
        True
    """

    def __init__(self, file: Any) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
            for info in self._zip.infolist():
                if info.CRC == 0:  # nobody has said it
                    info.CRC = None  # pyright: ignore[reportAttributeAccessIssue]
        except zipfile.BadZipFile:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {file} is none"
            ) from None
        names = self._zip.namelist()
        self._root = names[0].partition("/")[0] + "/" if names else ""

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._zip.getinfo(self._root + name)
        except KeyError:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found"
            ) from None

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return self._root + name in self._zip.NameToInfo

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return [name.removeprefix(self._root) for name in self._zip.namelist()]

    def get_record(self, name: str) -> bytes:
        """The bytes of a record.

        Raises:
            RuntimeError: there is none of that name, it is damaged, or it stands for far more bytes
                than any text that was compressed.
        """
        info = self._info(name)
        bad = f"PytorchStreamReader failed reading file {name}: "
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise RuntimeError(f"{bad}it is compressed by the method {info.compress_type}")
        packed = info.compress_type == zipfile.ZIP_DEFLATED
        if packed and info.file_size > _INFLATED_ANYWAY + _MOST_TIMES * info.compress_size:
            raise RuntimeError(
                f"{bad}{info.compress_size} bytes stand for {info.file_size}: no text is so large"
            )
        try:
            return self._zip.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise RuntimeError(f"{bad}{error or 'it ends too early'}") from error

    def get_record_size(self, name: str) -> int:
        """The number of its bytes."""
        return self._info(name).file_size

    def get_record_header_offset(self, name: str) -> int:
        """Where the header of a record begins in the file."""
        return self._info(name).header_offset

    def get_record_offset(self, name: str) -> int:
        """Where the bytes of a record begin in the file."""
        info = self._info(name)
        with self._zip.open(info) as record:
            return record._orig_compress_start  # pyright: ignore[reportAttributeAccessIssue]

    def get_storage_from_record(self, name: str, numel: int, dtype: rushlight.dtype) -> Tensor:
        """A tensor of the first elements of a record.

        Args:
            name: the record.
            numel: the number of elements.
            dtype: theirs; an `UntypedStorage` counts as bytes.
        """
        kind = rushlight.uint8 if dtype is rushlight.UntypedStorage else dtype
        data = bytearray(self.get_record(name))
        if numel * kind.itemsize > len(data):
            raise RuntimeError(f"record {name} has {len(data)} bytes, too few for {numel} elements")
        return (
            rushlight.frombuffer(data, dtype=kind, count=numel)
            if numel
            else rushlight.empty(0, dtype=kind)
        )

    def version(self) -> int:
        """The version of the format, which the file tells."""
        return int(self.get_record("version"))

    def serialization_id(self) -> str:
        """A number of the contents, where the writer left one."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes records into a file, which `load` reads where they are those of `save`.

    Args:
        file: a path or a file that is open for writing.
        compute_crc32: checksums are always written.
        storage_alignment: the bytes of each record begin at a multiple of this many.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> writer = torch.PyTorchFileWriter(file)
        >>> writer.write_record("note", b"seven", 5)
        >>> writer.write_end_of_file()
        >>> _ = file.seek(0)
        >>> torch.PyTorchFileReader(file).get_record("note")
        b'seven'
    """

    def __init__(self, file: Any, compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        name = os.path.basename(os.fspath(file)) if isinstance(file, str | os.PathLike) else ""
        if storage_alignment < 1:
            raise ValueError(f"storage_alignment must be positive, got {storage_alignment}")
        self._alignment = storage_alignment
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._root = os.path.splitext(name)[0] or "archive"
        self._checksum = 0

    def archive_name(self) -> str:
        """The folder that the records are in."""
        return self._root

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Writes the first `size` bytes of a record.

        Args:
            name: the record.
            data: bytes, text, a storage, or the address of the first byte.
            size: how many.
        """
        if isinstance(data, int):
            content = ctypes.string_at(data, size)
        elif isinstance(data, rushlight.UntypedStorage):
            content = _C._storage_bytes(data)
        else:
            content = data.encode() if isinstance(data, str) else data
        if len(content) < size:
            raise RuntimeError(f"record {name} has {len(content)} bytes, fewer than {size}")
        self._put(name, bytes(content[:size]))

    def write_record_metadata(self, name: str, size: int) -> None:
        """Writes a record of `size` zeros, without a checksum, whose place others may fill."""
        self._put(name, bytes(size)).CRC = 0

    def _put(self, name: str, content: bytes) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(f"{self._root}/{name}")
        # 30 bytes of a header, the name, and an extra field of four bytes and padding.
        begin = self._zip.start_dir + 30 + len(info.filename.encode()) + 4
        padding = -begin % self._alignment
        info.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        self._zip.writestr(info, content)
        self._checksum = zlib.crc32(content, zlib.crc32(name.encode(), self._checksum))
        return info

    def get_all_written_records(self) -> list[str]:
        """The names of what has been written."""
        return [name.removeprefix(self._root + "/") for name in self._zip.namelist()]

    def serialization_id(self) -> str:
        """A number of what has been written so far."""
        return f"{self._checksum:040d}"

    def write_end_of_file(self) -> None:
        """Ends the file."""
        own = self.serialization_id()
        ends = {"version": "3\n", "byteorder": sys.byteorder, ".data/serialization_id": own}
        written = self.get_all_written_records()
        if ".data/version" in written:  # that of an exported program
            del ends["version"]
        for name, text in ends.items():
            if name not in written:
                self.write_record(name, text, len(text))
        self._zip.close()
