"""Files of `save` record by record: `PyTorchFileReader`, `PyTorchFileWriter`."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]


class PyTorchFileReader:
    """The records of a file that `save` wrote.

    Args:
        file: a path or a file that is open for reading.
    """

    def __init__(self, file: Any) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
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
        """The bytes of a record."""
        return self._zip.read(self._info(name))

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
            numel: how many elements.
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
    """

    def __init__(self, file: Any) -> None:
        name = os.path.basename(os.fspath(file)) if isinstance(file, str | os.PathLike) else ""
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._root = os.path.splitext(name)[0] or "archive"

    def archive_name(self) -> str:
        """The folder that the records are in."""
        return self._root

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Writes the first `size` bytes of a record."""
        if isinstance(data, rushlight.UntypedStorage):
            content = bytes(data.tolist())
        else:
            content = data.encode() if isinstance(data, str) else bytes(data)
        self._zip.writestr(f"{self._root}/{name}", content[:size])

    def get_all_written_records(self) -> list[str]:
        """The names of what has been written."""
        return [name.removeprefix(self._root + "/") for name in self._zip.namelist()]

    def write_end_of_file(self) -> None:
        """Ends the file."""
        if "version" not in self.get_all_written_records():
            self.write_record("version", "3\n", 2)
        self._zip.close()
