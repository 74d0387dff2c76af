"""Files: names, open files, and their contents."""

from __future__ import annotations

import fnmatch
import os

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, no_length

__all__ = ["FileListerIterDataPipe", "FileOpenerIterDataPipe", "StreamReaderIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """Lists the names of the files in folders.

    Args:
        root: a folder, or several.
        masks: patterns of which a name must match one; "" for all.
        recursive: in folders of folders, too.
        abspath: give absolute names.
        non_deterministic: in the order of the system, which may change.
        length: what `len` says; -1: nothing.

    Example:
        >>> import pathlib, tempfile
        >>> from rushlight.utils.data.datapipes.iter import FileLister
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.txt").write_text("hello")
        ...     [pathlib.Path(name).name for name in FileLister(folder, "*.txt")]
        ['a.txt']
    """

    def __init__(
        self,
        root=".",
        masks="",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        self.datapipe = [root] if isinstance(root, str) else root
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def _matches(self, name: str) -> bool:
        masks = [self.masks] if isinstance(self.masks, str) else self.masks
        return not self.masks or any(fnmatch.fnmatch(name, mask) for mask in masks)

    def __iter__(self):
        for root in self.datapipe:
            root = os.path.abspath(root) if self.abspath else root
            for folder, folders, files in os.walk(root):
                if not self.non_deterministic:
                    folders.sort()
                    files.sort()
                yield from (os.path.join(folder, name) for name in files if self._matches(name))
                if not self.recursive:
                    break

    def __len__(self) -> int:
        if self.length < 0:
            raise no_length(self)
        return self.length


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """Opens files: pairs of a name and the open file.

    Args:
        datapipe: a stream of names.
        mode, encoding: as `open` has them.
        length: what `len` says; -1: nothing.

    Example:
        >>> import pathlib, tempfile
        >>> from rushlight.utils.data.datapipes.iter import FileLister, FileOpener, StreamReader
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.txt").write_text("hello")
        ...     [text for _, text in StreamReader(FileOpener(FileLister(folder)))]
        ['hello']
    """

    def __init__(self, datapipe, mode: str = "r", encoding=None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode if "r" in mode else "r" + mode
        self.encoding = encoding
        self.length = length

    def __iter__(self):
        for name in self.datapipe:
            yield name, open(name, self.mode, encoding=self.encoding)  # noqa: SIM115

    def __len__(self) -> int:
        if self.length < 0:
            raise no_length(self)
        return self.length


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Reads files: pairs of a name and the contents.

    Args:
        datapipe: a stream of pairs of a name and an open file, which is closed at its end.
        chunk: bytes or characters in a piece; all if None.

    For an example see `utils.data.datapipes.iter.FileOpener`.
    """

    def __init__(self, datapipe, chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self):
        for name, stream in self.datapipe:
            while piece := stream.read(self.chunk):
                yield name, piece
            stream.close()
